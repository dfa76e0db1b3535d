// Files attached to a prompt: dropped, pasted or picked. Text files as text, images as data.

import { toast } from './a11y.js';
import { h, icon, iconButton } from './dom.js';
import { bytes } from './format.js';

const MOST_BYTES = 5 << 20;
const MOST_FILES = 20;
const LONG_PASTE = 8_000;
const PICTURES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

export class Attachments {
  constructor() {
    this.items = [];
    this.element = h('ul', { class: 'attachments', 'aria-label': 'Attachments', hidden: true });
    this.picker = h('input', {
      type: 'file',
      multiple: true,
      hidden: true,
      onchange: () => {
        this.add([...this.picker.files]);
        this.picker.value = '';
      },
    });
  }

  pick() {
    this.picker.click();
  }

  take() {
    const taken = this.items.map(({ name, media_type, text, data }) => ({
      name,
      media_type,
      ...(text !== undefined ? { text } : { data }),
    }));
    this.set([]);
    return taken;
  }

  /** Replaces the attachments; also accepts those that `take` returned. */
  set(items) {
    this.items = items.map((item) => ({ size: item.text?.length ?? (item.data.length * 3) / 4, ...item }));
    this.draw();
  }

  async add(files) {
    for (const file of files) {
      if (this.items.length >= MOST_FILES) return toast(`A prompt can have at most ${MOST_FILES} files.`, 'error');
      if (file.size > MOST_BYTES) toast(`${file.name} is larger than ${bytes(MOST_BYTES)}.`, 'error');
      else await this.addOne(file).catch(() => toast(`Could not read ${file.name}.`, 'error'));
    }
  }

  async addOne(file) {
    const raw = new Uint8Array(await file.arrayBuffer());
    const name = file.name || 'pasted';
    if (PICTURES.has(file.type)) return this.put({ name, media_type: file.type, data: base64(raw), size: raw.length });
    try {
      const text = new TextDecoder('utf-8', { fatal: true }).decode(raw);
      if (text.includes('\u0000')) throw new TypeError();
      this.put({ name, media_type: file.type.startsWith('text/') ? file.type : 'text/plain', text, size: raw.length });
    } catch {
      toast(`${name} is not a text file or an image (PNG, JPEG, GIF, WebP).`, 'error');
    }
  }

  put(item) {
    this.items.push(item);
    this.draw();
  }

  /** Takes pasted files and long pasted text as attachments. True if it took something. */
  paste(event) {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length) {
      this.add(files);
      return true;
    }
    const text = event.clipboardData?.getData('text/plain') ?? '';
    if (text.length < LONG_PASTE) return false;
    const number = this.items.filter((item) => item.name.startsWith('pasted')).length + 1;
    this.put({ name: `pasted-${number}.txt`, media_type: 'text/plain', text, size: text.length });
    return true;
  }

  draw() {
    this.element.hidden = !this.items.length;
    this.element.replaceChildren(
      ...this.items.map((item, index) =>
        h(
          'li',
          { class: 'chip' },
          item.data ? h('img', { src: `data:${item.media_type};base64,${item.data}`, alt: '' }) : icon('file'),
          item.name,
          h('span', { class: 'quiet' }, bytes(item.size)),
          iconButton('close', `Remove ${item.name}`, () => this.set(this.items.filter((_, at) => at !== index))),
        ),
      ),
    );
  }
}

function base64(raw) {
  let text = '';
  for (let at = 0; at < raw.length; at += 0x8000) text += String.fromCharCode(...raw.subarray(at, at + 0x8000));
  return btoa(text);
}
