// Checks that hold on every page at every width and in both themes. Returns the problems, and data for the check of links.
(async () => {
    const problems = [];
    const main = document.querySelector('main');
    document.querySelectorAll('details').forEach(fold => { fold.open = true; });
    const images = Array.from(document.images);
    await Promise.all(images.map(image => {
        image.loading = 'eager';
        return image.decode().catch(() => problems.push(`picture ${image.src} cannot be decoded`));
    }));
    for (const image of images) {
        if (image.naturalWidth === 0) {
            problems.push(`picture ${image.src} is empty`);
        }
        if (!image.alt) {
            problems.push(`picture ${image.src} has no words`);
        }
    }
    for (const math of main.querySelectorAll('math')) {
        const box = math.getBoundingClientRect();
        if (box.width === 0 || box.height === 0) {
            problems.push(`formula ${math.textContent} has no size`);
        }
    }

    // Nothing is wider than the window, except content that scrolls in its own frame.
    const scrolls = element => {
        const style = getComputedStyle(element);
        return style.overflowX === 'auto' || style.overflowX === 'scroll';
    };
    for (const element of [document.scrollingElement, document.body, document.querySelector('.content')]) {
        if (element && element.scrollWidth > element.clientWidth) {
            problems.push(`${element.tagName}.${element.className} scrolls sideways: ${element.scrollWidth}`);
        }
    }
    const right = main.parentElement.getBoundingClientRect().right;
    const walk = element => {
        const box = element.getBoundingClientRect();
        if (box.width > 0 && box.right > right + 1) {
            problems.push(`${element.tagName}.${element.className} ends at ${box.right} of ${right}: ${element.textContent.slice(0, 40)}`);
            return;
        }
        if (!scrolls(element) && !(element instanceof MathMLElement)) {
            Array.from(element.children).forEach(walk);
        }
    };
    walk(main);

    // The contrast of text and background is at least 4.5 to 1 (WCAG 2, level AA).
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const seen = new Map();
    const rgba = color => {
        if (!seen.has(color)) {
            canvas.clearRect(0, 0, 1, 1);
            canvas.fillStyle = color;
            canvas.fillRect(0, 0, 1, 1);
            seen.set(color, Array.from(canvas.getImageData(0, 0, 1, 1).data));
        }
        return seen.get(color);
    };
    const luminance = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const behind = element => {
        for (let e = element; e; e = e.parentElement) {
            const color = rgba(getComputedStyle(e).backgroundColor);
            if (color[3] === 255) {
                return color;
            }
        }
        return [255, 255, 255, 255];
    };
    const pairs = new Set();
    for (const element of main.querySelectorAll('p, td, th button, li, a, sub, code, summary, h1, h2, strong, mi')) {
        if (!element.textContent.trim()) {
            continue;
        }
        const color = rgba(getComputedStyle(element).color);
        const ground = behind(element);
        const pair = `${element.tagName} ${color} on ${ground}`;
        if (pairs.has(pair)) {
            continue;
        }
        pairs.add(pair);
        const [low, high] = [luminance(color), luminance(ground)].sort((a, b) => a - b);
        const contrast = (high + 0.05) / (low + 0.05);
        if (contrast < 4.5) {
            problems.push(`contrast ${contrast.toFixed(2)}: ${pair}`);
        }
    }
    return {
        problems,
        ground: luminance(rgba(getComputedStyle(document.documentElement).backgroundColor)),
        links: Array.from(document.querySelectorAll('a[href]'), link => [link.getAttribute('href'), link.href]),
        places: Array.from(document.querySelectorAll('[id]'), element => element.id),
        counts: { images: images.length, formulas: document.querySelectorAll('math').length },
    };
})()
