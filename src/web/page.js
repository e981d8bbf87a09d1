// Keeps an open page as things are: the server tells that something happened, and the page asks for itself again.
'use strict';

const stale = document.getElementById('stale');
let asked = false, again = false, isOut = false, later, last = Date.now(), heard = last, shown = last, moved = 0, stream = null;

// The server shows times in the zone of whoever looks.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone && !document.cookie.split('; ').includes('zone=' + zone)) {
  document.cookie = 'zone=' + zone + '; path=/; max-age=31536000; samesite=strict'; refresh();
}

/** Whether a field is not any more as the server sent it. */
function isChanged(field) {
  if (field.type === 'checkbox') return field.checked !== field.defaultChecked;
  if (!field.options) return field.value !== field.defaultValue;
  return field.selectedIndex !== Math.max(0, [...field.options].findIndex((one) => one.defaultSelected));
}

/** Whether the person is writing, selecting or aiming at something that must not be taken from under their hands. */
function isWriting() {
  const at = document.activeElement, selected = getSelection();
  const fields = document.querySelectorAll('main textarea:not([hidden]), main input:not([type=hidden]), main select');
  const aims = Date.now() - moved < 2000 && document.querySelector('main button:hover');
  return !!aims || !!document.querySelector('main [data-keep]') || [...fields].some((field) => isChanged(field) || (field === at && field.value)) ||
    (!selected.isCollapsed && document.getElementById('main').contains(selected.anchorNode));
}

/** What can have the focus in what is replaced, and what an element is known by. */
const stops = () => [...document.querySelectorAll('#needs a, main a, main button, main summary, main input, main select, main textarea, main [tabindex]')];
const known = (one) => one.id || one.getAttribute('href') || one.tagName;

/** Puts what the server shows now in place of what is shown. Open texts, the focus and the scrolling stay. */
function replace(text) {
  const fresh = new DOMParser().parseFromString(text, 'text/html');
  const open = [...document.querySelectorAll('main details')].map((one) => one.open);
  const at = stops().indexOf(document.activeElement), was = at < 0 ? null : known(document.activeElement);
  const writes = isWriting();
  for (const part of writes ? ['#needs'] : ['#needs', '#as-of', '#main', '#service']) {
    const [old, now] = [document.querySelector(part), fresh.querySelector(part)];
    if (old && now && old.innerHTML !== now.innerHTML) Object.assign(old, { innerHTML: now.innerHTML, className: now.className });
  }
  // A form that stays is sent in the session of now.
  for (const one of document.querySelectorAll('[name=token]')) one.value = fresh.querySelector('[name=token]').value;
  if (writes) waits(); else shown = Date.now();
  document.title = fresh.title;
  const details = document.querySelectorAll('main details');
  if (details.length >= open.length) open.forEach((was, at) => { details[at].open = was; });
  const now = stops();
  if (at < 0 || now.includes(document.activeElement)) return;
  const to = now[at] && known(now[at]) === was ? now[at] : now.find((one) => known(one) === was);
  if (to) to.focus({ preventScroll: true });
}

/** `in 2h 5m`, `24m ago`: what src/app/times.rs says. */
function distance(span) {
  let rest = Math.floor(Math.abs(span) / 1000);
  if (rest < 1) return 'now';
  const all = [[86400, 'd'], [3600, 'h'], [60, 'm'], [1, 's']], words = [];
  const first = all.findIndex(([size]) => rest >= size);
  for (const [size, letter] of all.slice(first, rest < 600 ? 4 : Math.min(first + 2, 3))) {
    if (rest >= size) words.push(Math.floor(rest / size) + letter);
    rest %= size;
  }
  return span > 0 ? 'in ' + words.join(' ') : words.join(' ') + ' ago';
}

/** Says anew how far off times are, by the server's clock. */
function count() {
  const now = Date.parse(document.querySelector('#as-of time').dateTime) + Date.now() - shown;
  for (const one of document.querySelectorAll('time.off')) one.textContent = distance(Date.parse(one.dateTime) - now);
}

/** Asks for the page again: at once, then after twice the time that the answer took, at least 40 ms and at most half a second. */
async function refresh() {
  if (asked || document.querySelector('[data-still]')) { again = asked; return; }
  asked = true;
  const began = Date.now();
  try {
    const answer = await fetch(location.href, { headers: { accept: 'text/html' }, cache: 'no-store', signal: AbortSignal.timeout(10000) });
    isOut = answer.status === 401;
    if (isOut && isWriting()) isStale('You are not logged in here any more. Log in in another tab (ollim-bot web), then send what you wrote.');
    else if (isOut) location.reload();
    else if (answer.status === 404) isStale('This is not there any more.');
    else if (!answer.ok) isStale(`The service answers with an error (${answer.status}).`);
    else { replace(await answer.text()); last = heard = Date.now(); stale.hidden = true; }
  } catch { isStale('The service does not answer.'); }
  setTimeout(() => {
    asked = false;
    if (again) { again = false; refresh(); }
  }, Math.min(500, Math.max(40, 2 * (Date.now() - began))));
}

/** Asks for the page again in a while. */
function waits() { clearTimeout(later); later = setTimeout(() => { if (!document.hidden) refresh(); }, 3000); }

/** Says why the page is not as things are, and how old it is. */
function isStale(why) {
  stale.textContent = why + ' What you see is from ' + new Date(last).toLocaleTimeString('en-GB') + '.';
  stale.hidden = false;
  waits();
}

function listen() {
  if (stream) return;
  heard = Date.now();
  stream = new EventSource(document.querySelector('[data-chat]') ? '/events?chat=1' : '/events');
  stream.addEventListener('alive', () => { heard = Date.now(); });
  stream.onmessage = (event) => {
    heard = Date.now();
    const root = document.documentElement;
    if (stale.hidden && Number(event.data) === Number(root.dataset.newest)) return;
    root.dataset.newest = event.data;
    refresh();
  };
  stream.onerror = () => {
    // A browser gives up on a server that refuses, so that is tried again here; the page itself says why it refuses.
    if (stream && stream.readyState === EventSource.CLOSED) { stop(); refresh(); setTimeout(listen, 3000); } else isStale('The service does not answer.');
  };
}
function stop() { if (stream) stream.close(); stream = null; }

// A page that nobody sees asks for nothing. One that the browser puts aside is shown as it was.
document.addEventListener('visibilitychange', () => { if (document.hidden) stop(); else { listen(); refresh(); } });
addEventListener('pointermove', () => { moved = Date.now(); });
addEventListener('pagehide', stop);
addEventListener('pageshow', (event) => { if (event.persisted) { listen(); refresh(); } });
// The line for now moves by itself.
setInterval(() => { if (!document.hidden) refresh(); }, 300000);
// "in 5m" grows old by itself. The server says something every ten seconds: from one that is silent, the way to it may be lost.
setInterval(() => {
  if (document.hidden || !stream) return;
  if (!isWriting()) count();
  if (Date.now() - heard > 30000) { stop(); listen(); refresh(); }
}, 10000);

document.addEventListener('click', (event) => {
  const text = event.target.closest('[data-copy]');
  if (text) navigator.clipboard.writeText(text.dataset.copy).then(() => { text.textContent = 'Copied'; });
});
// What cannot be sent without a session stays in its field. Ctrl+Enter sends what is written.
document.addEventListener('submit', (event) => { if (isOut) event.preventDefault(); });
document.addEventListener('keydown', (event) => {
  const form = event.target.closest('form');
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && form) form.requestSubmit();
});

// What only a script does is shown where one runs.
document.documentElement.dataset.script = '';
if (!document.hidden) listen();
