//! Writes every sixteenth frame of generated clips as a strip, next to an x–t slice. These clips replace missing data:
//!
//! `cargo run --release -p posenc-data --example film_strip -- strip.png 128 4`
//! (file, side length of each frame, number of clips)

use std::time::Instant;

use posenc_data::generate::Generator;
use posenc_data::{Channels, Image};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("name the PNG file to write")?;
    let size: usize = arguments.next().map_or(Ok(128), |side| side.parse())?;
    let n_clips: usize = arguments.next().map_or(Ok(4), |count| count.parse())?;

    let mut pixels = Vec::new();
    let start = Instant::now();
    for i in 0..n_clips {
        let clip = Generator::MovingDeadLeaves.clip(0, "video-clips", i, size, size, Channels::Rgb);
        let frames = (0..8).filter_map(|k| clip.frame(k * size / 8));
        let tiles: Vec<Image> = frames.chain(clip.row_over_time(size / 2)).collect();
        for y in 0..size {
            for tile in &tiles {
                pixels.extend_from_slice(&tile.pixels[3 * y * size..3 * (y + 1) * size]);
            }
        }
    }
    println!("{n_clips} clips in {:.2} s", start.elapsed().as_secs_f64());
    let (width, height) = (pixels.len() / (3 * n_clips * size).max(1), n_clips * size);
    Image { name: "strip".to_owned(), width, height, channels: 3, pixels }
        .write_png(path.as_ref())?;
    Ok(())
}
