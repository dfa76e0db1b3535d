// Jump to one message of a transcript, however far up it is.

import { centerAt, unfold } from './finding.js';

const AROUND = 30; // rows above and below it
const SHOWN_MS = 2_500;
const AGAIN_MS = 50;
const MOST_FAILURES = 100;

/** To the words in the message, if any are given. False if it is not in the transcript: undone, or never there. */
export async function jumpTo(transcript, id, words = '') {
  const { history } = transcript;
  await history.loading?.catch(() => {});
  for (let failures = 0; failures < MOST_FAILURES && !transcript.closed && !history.byId.has(id) && history.older; ) {
    if (await history.loadOlder().catch(() => false)) continue;
    failures += 1; // someone else is loading, or the server is away
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
  const place = transcript.closed ? -1 : (transcript.list?.findIndex((message) => message.id === id) ?? -1);
  if (place < 0) return false;
  transcript.pinned = false;
  transcript.arrange(place - AROUND, place + AROUND);
  const row = transcript.views.get(id).element;
  const sought = words.toLowerCase();
  if (sought) unfold(transcript, id, sought);
  centerAt(transcript, row, sought);
  transcript.remember();
  transcript.tellNewest();
  row.tabIndex = -1;
  row.focus({ preventScroll: true });
  row.classList.add('found');
  setTimeout(() => row.classList.remove('found'), SHOWN_MS);
  return true;
}
