//! Writes a contact sheet of the generated dead-leaves images that replace missing data:
//!
//! `cargo run --release -p posenc-data --example contact_sheet -- sheet.png 512 16`
//! (file, side length of each image, number of images)

use std::time::Instant;

use posenc_data::Channels;
use posenc_data::generate::Generator;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("name the PNG file to write")?;
    let size: u32 = arguments.next().map_or(Ok(512), |side| side.parse())?;
    let n_images: u32 = arguments.next().map_or(Ok(16), |count| count.parse())?;

    let n_columns = n_images.clamp(1, 4);
    let mut sheet = image::RgbImage::new(n_columns * size, n_images.div_ceil(n_columns) * size);
    let start = Instant::now();
    for i in 0..n_images {
        let generated =
            Generator::DeadLeaves.image(0, "div2k-test", i as usize, size as usize, Channels::Rgb);
        for (at, pixel) in (0..).zip(generated.pixels.chunks_exact(3)) {
            let (x, y) = (i % n_columns * size + at % size, i / n_columns * size + at / size);
            let byte = |value: f64| (value * 255.0).round() as u8;
            sheet.put_pixel(x, y, image::Rgb([byte(pixel[0]), byte(pixel[1]), byte(pixel[2])]));
        }
    }
    println!("{n_images} images in {:.2} s", start.elapsed().as_secs_f64());
    sheet.save(&path)?;
    Ok(())
}
