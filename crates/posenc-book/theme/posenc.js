'use strict';

// Tables that can be sorted, lists of claims that can be filtered, pictures that can be enlarged, and a search. Pages are
// complete without this script: tables keep their order, and pictures are links to their files.

(function themes() {
    const dark = document.getElementById('mdbook-theme-navy');
    if (dark) {
        dark.textContent = 'Dark';
    }
})();

(function tables() {
    const RAISED = '⁰¹²³⁴⁵⁶⁷⁸⁹';
    const UNITS = { ms: 1e-3, s: 1, min: 60, h: 3600, d: 86400, B: 1, kB: 1e3, MB: 1e6, GB: 1e9 };

    /** The number at the start of a text in the base unit; null if there is none. */
    function number(text) {
        const found = /^[^\d+\-−∞]{0,2}([+\-−]?(?:\d[\d,]*(?:\.\d+)?|∞))(?:\s*×\s*10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)|e([+-]?\d+))?/.exec(text);
        if (!found) {
            return null;
        }
        const base = found[1].replace('−', '-').replace(/,/g, '').replace('∞', 'Infinity');
        let power = Number(found[3] || 0);
        if (found[2]) {
            const digits = Array.from(found[2].replace('⁻', ''), c => RAISED.indexOf(c)).join('');
            power = Number(digits) * (found[2].startsWith('⁻') ? -1 : 1);
        }
        const unit = /^\s*([a-zA-Z]+)\b/.exec(text.slice(found[0].length));
        const factor = unit && Object.hasOwn(UNITS, unit[1]) ? UNITS[unit[1]] : 1;
        return Number(`${base}e${power}`.replace('Infinitye0', 'Infinity')) * factor;
    }

    /** The first line of a cell, without superscripts and subscripts. */
    function text(cell) {
        let shown = '';
        for (const node of cell.childNodes) {
            if (node.nodeName === 'BR' && shown.trim() !== '') {
                break;
            }
            shown += node.nodeName === 'SUP' || node.nodeName === 'SUB' ? '' : node.textContent;
        }
        return shown.trim();
    }

    const is_missing = shown => shown === '' || shown === '–' || shown === '-' || shown === '—' || shown === 'NaN';

    /** Whether a row summarizes others and keeps its place: all of its first cell is bold or italic. */
    function is_fixed(row) {
        const cell = row.cells[0];
        const only = cell && cell.childNodes.length === 1 ? cell.firstChild.nodeName : '';
        return only === 'STRONG' || only === 'EM';
    }

    function prepare(table) {
        const body = table.tBodies[0];
        const head = table.tHead && table.tHead.rows[0];
        if (!body || !head || body.rows.length < 2 || body.querySelector('img')) {
            return;
        }
        const rows = Array.from(body.rows);
        // Repeated names are shown only while the table is sorted.
        const repeated = [];
        for (let i = 1, above = text(rows[0].cells[0]); i < rows.length; i++) {
            const cell = rows[i].cells[0];
            if (text(cell) !== '') {
                above = text(cell);
            } else if (above !== '' && head.cells[0].textContent.trim() !== '') {
                repeated.push([cell, above]);
            }
        }

        function fill(is_sorted) {
            for (const [cell, above] of repeated) {
                cell.replaceChildren();
                if (is_sorted) {
                    const span = document.createElement('span');
                    span.className = 'repeated';
                    span.textContent = above;
                    cell.append(span);
                }
            }
        }

        function sort(column, direction) {
            fill(direction !== 'none');
            const free = rows.filter(row => !is_fixed(row));
            if (direction !== 'none') {
                const sign = direction === 'descending' ? -1 : 1;
                const shown = new Map(free.map(row => [row, text(row.cells[column])]));
                const numbers = new Map(free.map(row => [row, number(shown.get(row))]));
                const filled = free.filter(row => !is_missing(shown.get(row)));
                const is_number = filled.every(row => numbers.get(row) !== null);
                free.sort((a, b) => {
                    const missing = is_missing(shown.get(a)) - is_missing(shown.get(b));
                    if (missing !== 0) {
                        return missing;
                    }
                    return sign * (is_number
                        ? numbers.get(a) - numbers.get(b)
                        : shown.get(a).localeCompare(shown.get(b), 'en', { numeric: true }));
                });
            }
            const next = free.values();
            body.append(...rows.map(row => is_fixed(row) ? row : next.next().value));
        }

        Array.from(head.cells).forEach((cell, column) => {
            if (cell.textContent.trim() === '') {
                return;
            }
            const button = document.createElement('button');
            button.type = 'button';
            button.className = 'sort';
            button.title = 'Sort by this column';
            button.append(...cell.childNodes);
            cell.append(button);
            cell.setAttribute('aria-sort', 'none');
            const order = ['none', 'ascending', 'descending'];
            button.addEventListener('click', () => {
                const now = order.indexOf(cell.getAttribute('aria-sort'));
                const then = order[(now + 1) % order.length];
                for (const other of head.cells) {
                    if (other.hasAttribute('aria-sort')) {
                        other.setAttribute('aria-sort', 'none');
                    }
                }
                cell.setAttribute('aria-sort', then);
                sort(column, then);
            });
        });
    }

    document.querySelectorAll('main table').forEach(prepare);

    // Wide tables scroll in their frames, also by keyboard; arrow keys then do not turn the page.
    const frames = Array.from(document.querySelectorAll('main .table-wrapper'));
    function reach() {
        for (const frame of frames) {
            const is_wide = frame.scrollWidth > frame.clientWidth;
            ['tabindex', 'role', 'aria-label'].forEach(name => frame.removeAttribute(name));
            if (is_wide) {
                frame.tabIndex = 0;
                frame.setAttribute('role', 'region');
                frame.setAttribute('aria-label', 'Table, scrolls sideways');
            }
        }
    }
    for (const frame of frames) {
        frame.addEventListener('keydown', event => {
            if (event.target === frame && frame.tabIndex === 0) {
                event.stopPropagation();
            }
        });
    }
    reach();
    window.addEventListener('resize', reach);
    document.addEventListener('toggle', reach, true);
})();

(function filters() {
    const SHORTEST = 8;
    document.querySelectorAll('main table').forEach(table => {
        const head = table.tHead && table.tHead.rows[0];
        const body = table.tBodies[0];
        const names = head ? Array.from(head.cells, cell => cell.textContent.trim()) : [];
        if (!names.includes('Claim') || !body || body.rows.length < SHORTEST) {
            return;
        }
        const bar = document.createElement('div');
        bar.className = 'claim-filter';
        const input = document.createElement('input');
        input.type = 'search';
        input.placeholder = 'Filter claims';
        input.setAttribute('aria-label', 'Filter claims by words');
        bar.append(input);
        const rows = Array.from(body.rows);
        const shown = (row, column) => row.cells[column].textContent.replace(/\s+/g, ' ').trim();
        // A menu for each column with few distinct values.
        const menus = [];
        names.forEach((name, column) => {
            const values = Array.from(new Set(rows.map(row => shown(row, column)))).sort();
            if (name === 'Claim' || name === 'Item' || values.length < 2 || values.length > 12) {
                return;
            }
            const menu = document.createElement('select');
            menu.setAttribute('aria-label', name);
            menu.append(new Option(`${name}: all`, ''));
            values.forEach(value => menu.append(new Option(value, value)));
            menus.push([menu, column]);
            bar.append(menu);
        });
        const count = document.createElement('output');
        bar.append(count);
        function update() {
            const words = input.value.toLowerCase().split(/\s+/).filter(word => word);
            let kept = 0;
            for (const row of rows) {
                const text = row.textContent.toLowerCase();
                const fits = words.every(word => text.includes(word))
                    && menus.every(([menu, column]) => menu.value === '' || shown(row, column) === menu.value);
                row.hidden = !fits;
                kept += fits ? 1 : 0;
            }
            count.textContent = `${kept} of ${rows.length} claims`;
        }
        bar.addEventListener('input', update);
        // Keys pressed in the filter must not turn the page.
        bar.addEventListener('keydown', event => event.stopPropagation());
        update();
        (table.closest('.table-wrapper') || table).before(bar);
    });
})();

(function search() {
    const MOST = 40;
    const buttons = document.querySelector('#mdbook-menu-bar .left-buttons');
    const main = document.querySelector('main');
    if (!buttons || !main || typeof path_to_root === 'undefined') {
        return;
    }
    const toggle = document.createElement('button');
    toggle.id = 'site-search-toggle';
    toggle.type = 'button';
    toggle.textContent = 'Search';
    toggle.title = 'Search claims, items, embedders and errata (/)';
    toggle.setAttribute('aria-expanded', 'false');
    buttons.append(toggle);
    const box = document.createElement('div');
    box.className = 'site-search';
    box.hidden = true;
    const input = document.createElement('input');
    input.type = 'search';
    input.placeholder = 'Search claims, items, embedders and errata';
    input.setAttribute('aria-label', input.placeholder);
    const count = document.createElement('output');
    const list = document.createElement('ol');
    box.append(input, count, list);
    main.before(box);

    /** The index is loaded when it is first needed. */
    let loading = null;
    function load() {
        loading = loading || new Promise((resolve, reject) => {
            const script = document.createElement('script');
            script.src = `${path_to_root}search.js`;
            script.onload = resolve;
            script.onerror = reject;
            document.head.append(script);
        });
        return loading;
    }

    function find() {
        const words = input.value.toLowerCase().split(/\s+/).filter(word => word);
        const all = window.posenc_entries || [];
        const found = words.length === 0 ? [] : all.filter(([kind, title, text]) => {
            const whole = `${kind} ${title} ${text}`.toLowerCase();
            return words.every(word => whole.includes(word));
        });
        count.textContent = words.length === 0 ? '' : `${found.length} found`;
        list.replaceChildren(...found.slice(0, MOST).map(([kind, title, text, link]) => {
            const entry = document.createElement('li');
            const anchor = document.createElement('a');
            anchor.href = path_to_root + link;
            anchor.textContent = title;
            entry.append(`${kind}: `, anchor, text ? ` – ${text}` : '');
            return entry;
        }));
    }

    function open() {
        box.hidden = false;
        toggle.setAttribute('aria-expanded', 'true');
        load().then(find, () => { count.textContent = 'The index cannot be loaded.'; });
        input.focus();
    }

    function close() {
        box.hidden = true;
        toggle.setAttribute('aria-expanded', 'false');
        toggle.focus();
    }

    toggle.addEventListener('click', () => box.hidden ? open() : close());
    input.addEventListener('input', () => load().then(find));
    box.addEventListener('keydown', event => {
        event.stopPropagation();
        if (event.key === 'Escape') {
            close();
        }
    });
    document.addEventListener('keydown', event => {
        const is_typed = event.target.closest && event.target.closest('input, select, textarea, dialog');
        if (event.key === '/' && !is_typed && !event.ctrlKey && !event.metaKey) {
            event.preventDefault();
            open();
        }
    });
})();

(function pictures() {
    if (!window.HTMLDialogElement) {
        return;
    }
    let dialog = null;
    let scale = 1;

    function build() {
        dialog = document.createElement('dialog');
        dialog.className = 'zoom-view';
        dialog.innerHTML = '<header><p></p>'
            + '<button type="button" data-do="out" title="Smaller (−)" aria-label="Smaller">−</button>'
            + '<button type="button" data-do="fit" title="Fit to the window (0)">Fit</button>'
            + '<button type="button" data-do="in" title="Larger (+)" aria-label="Larger">+</button>'
            + '<button type="button" data-do="close" title="Close (Esc)" aria-label="Close">✕</button></header>'
            + '<div class="desk" tabindex="0" role="region" aria-label="Picture"></div>';
        document.body.append(dialog);
        const deeds = { out: () => zoom(1 / 1.4), in: () => zoom(1.4), fit, close: () => dialog.close() };
        dialog.querySelectorAll('button').forEach(button => {
            button.addEventListener('click', deeds[button.dataset.do]);
        });
        // Keys pressed in the dialog must not turn the page.
        dialog.addEventListener('keydown', event => {
            event.stopPropagation();
            const deed = { '+': deeds.in, '=': deeds.in, '-': deeds.out, '0': fit }[event.key];
            if (deed && !event.ctrlKey && !event.metaKey) {
                event.preventDefault();
                deed();
            }
        });
        const desk = dialog.querySelector('.desk');
        desk.addEventListener('wheel', event => {
            event.preventDefault();
            zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15, event);
        }, { passive: false });
        desk.addEventListener('pointerdown', event => {
            // Browsers scroll by touch without a script.
            if (event.button !== 0 || event.pointerType === 'touch') {
                return;
            }
            const from = [event.clientX + desk.scrollLeft, event.clientY + desk.scrollTop];
            desk.setPointerCapture(event.pointerId);
            desk.classList.add('held');
            const move = e => desk.scrollTo(from[0] - e.clientX, from[1] - e.clientY);
            desk.addEventListener('pointermove', move);
            desk.addEventListener('lostpointercapture', () => {
                desk.removeEventListener('pointermove', move);
                desk.classList.remove('held');
            }, { once: true });
        });
        // The event comes late: the next picture may be open by then.
        dialog.addEventListener('close', () => dialog.open || desk.replaceChildren());
        window.addEventListener('resize', () => dialog.open && fit());
    }

    function sheet() {
        return dialog.querySelector('.sheet');
    }

    function resize() {
        const image = sheet();
        image.style.width = `${Number(image.dataset.width) * scale}px`;
        image.style.height = 'auto';
    }

    /** Makes the picture as large as the window allows. */
    function fit() {
        const image = sheet();
        const desk = dialog.querySelector('.desk');
        if (!image || !image.dataset.width) {
            return;
        }
        const across = desk.clientWidth / Number(image.dataset.width);
        scale = Math.min(across, desk.clientHeight / Number(image.dataset.height));
        resize();
    }

    /** Zooms around the pointer, or else around the middle. */
    function zoom(factor, event) {
        const desk = dialog.querySelector('.desk');
        const box = desk.getBoundingClientRect();
        const x = event ? event.clientX - box.left : desk.clientWidth / 2;
        const y = event ? event.clientY - box.top : desk.clientHeight / 2;
        const [left, top] = [(desk.scrollLeft + x) * factor, (desk.scrollTop + y) * factor];
        const width = Number(sheet().dataset.width) * scale * factor;
        if (width < 60 || width > 20000) {
            return;
        }
        scale *= factor;
        resize();
        desk.scrollTo(left - x, top - y);
    }

    function open(link) {
        if (!dialog) {
            build();
        }
        const small = link.querySelector('img');
        const image = document.createElement('img');
        image.className = `sheet ${link.classList.contains('plot') ? 'plot' : 'picture'}`;
        image.alt = small.alt;
        image.draggable = false;
        image.dataset.width = small.getAttribute('width') || small.naturalWidth;
        image.dataset.height = small.getAttribute('height') || small.naturalHeight;
        image.src = link.href;
        dialog.querySelector('header p').textContent = small.alt;
        dialog.querySelector('header p').title = small.alt;
        dialog.querySelector('.desk').replaceChildren(image);
        dialog.showModal();
        dialog.querySelector('.desk').focus();
        fit();
    }

    document.querySelectorAll('main a.zoom').forEach(link => {
        link.setAttribute('aria-haspopup', 'dialog');
        link.title = 'Enlarge';
        link.addEventListener('click', event => {
            // With a modifier key, the browser opens the file in a new tab or window.
            if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) {
                return;
            }
            event.preventDefault();
            open(link);
        });
    });
})();

(function folds() {
    /** The element that the address names; null if there is none. */
    function target() {
        const hash = location.hash.slice(1);
        try {
            return document.getElementById(decodeURIComponent(hash));
        } catch {
            // Not valid percent-encoding.
            return document.getElementById(hash);
        }
    }

    /** Opens the folded parts that hide the target of a link. */
    function reveal() {
        const place = target();
        if (!place) {
            return;
        }
        let is_hidden = false;
        for (let fold = place.closest('details'); fold; fold = fold.parentElement.closest('details')) {
            is_hidden = is_hidden || !fold.open;
            fold.open = true;
        }
        if (is_hidden) {
            place.scrollIntoView();
        }
    }
    reveal();
    window.addEventListener('hashchange', reveal);

    // Print folded parts, too.
    let opened = [];
    window.addEventListener('beforeprint', () => {
        opened = Array.from(document.querySelectorAll('details:not([open])'));
        opened.forEach(fold => { fold.open = true; });
    });
    window.addEventListener('afterprint', () => opened.forEach(fold => { fold.open = false; }));
})();
