const map = new Map();
for (let i = 0; i < 2e6; i++) map.set((i * 7919) % 15000017, {v: i});
let sum = 0;
for (let i = 0; i < 4e6; i++) {
    const found = map.get((i * 104729) % 15000017);
    if (found) sum += found.v;
}
console.log(sum);
