// The title of the page: what is shown, with the number of things that wait for the user in front of it.

let text = 'Longboat';
let count = 0;

const draw = () => (document.title = count ? `(${count}) ${text}` : text);

export function setTitle(shown) {
  text = shown;
  draw();
}

export function setTitleCount(number) {
  count = number;
  draw();
}
