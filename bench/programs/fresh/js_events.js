// expect: load=until|js_events line=until|js_events data=kind:v8 level=DRAM|L3 memory=yes
// A linked list of objects, each of which refers to any other one.
class Event {
  constructor(at) {
    this.at = at;
    this.name = 'event';
    this.after = null;
  }
}

function until(event, time) {
  let passed = 0;
  while (event !== null && passed < time) {
    passed += event.at; // HOT
    event = event.after; // HOT
  }
  return [event, passed];
}

const events = [];
for (let i = 0; i < 1500000; i++) events.push(new Event(1 + i % 3));
let drawn = 9;
for (let i = events.length - 1; i > 0; i--) {
  drawn = (Math.imul(drawn, 1103515245) + 12345) & 0x7fffffff;
  const other = drawn % i, event = events[i];
  events[i] = events[other];
  events[other] = event;
}
for (let i = 0; i < events.length; i++) events[i].after = events[(i + 1) % events.length];
let at = events[0], sum = 0;
const ends = Date.now() + 5000;
while (Date.now() < ends) {
  const [next, passed] = until(at, 100000);
  at = next;
  sum += passed;
}
console.log(sum > 0);
