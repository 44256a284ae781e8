// expect: load=faded line=faded data=kind:buffer level=DRAM|L3 memory=yes
// A typed array, read in the order that another one gives.
function faded(pixels, places) {
  let light = 0;
  for (let i = 0; i < places.length; i++) {
    light += pixels[places[i]] >> 1; // HOT
  }
  return light;
}

const pixels = new Uint32Array(40 << 20), places = new Uint32Array(2 << 20);
for (let i = 0; i < pixels.length; i++) pixels[i] = i & 255;
let drawn = 5;
for (let i = 0; i < places.length; i++) {
  drawn = (Math.imul(drawn, 22695477) + 1) >>> 0;
  places[i] = (drawn >>> 4) % pixels.length;
}
let light = 0;
const ends = Date.now() + 5000;
while (Date.now() < ends) light += faded(pixels, places);
console.log(light > 0);
