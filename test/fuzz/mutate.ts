import type { Random } from "../support/random.ts";

/** Numbers at and beyond the limits of parsers. */
const EDGES = "-1 0 1.5 1e308 1e400 -0 2147483648 9007199254740993 00 0x10 NaN null true".split(" ");
const LITTLE = [
	"\0",
	"\r",
	"\n",
	"\r\n\r\n",
	'"',
	"\\",
	"\\ud800",
	"{",
	"[",
	"]",
	"}",
	",",
	":",
	"\u{1f600}",
	"\ufeff",
	"data: ",
	"[DONE]",
];

/** Changes the bytes at up to four positions, in ways that often break parsers. */
export function mutated(bytes: Uint8Array, random: Random): Uint8Array<ArrayBuffer> {
	let changed = Buffer.from(bytes);
	for (let left = random.pick([1, 1, 1, 2, 4]); left > 0; left -= 1) changed = changedOnce(changed, random);
	return new Uint8Array(changed);
}

function changedOnce(bytes: Buffer, random: Random): Buffer<ArrayBuffer> {
	const { length } = bytes;
	const at = random.int(0, length);
	const to = Math.min(length, at + random.int(1, 1 + Math.floor(length / 4)));
	switch (random.int(0, 8)) {
		case 0: {
			const flipped = Buffer.from(bytes);
			if (at < length) flipped[at] = random.int(0, 255);
			return flipped;
		}
		case 1:
			return Buffer.from(bytes.subarray(0, at));
		case 2:
			return Buffer.concat([bytes.subarray(0, at), bytes.subarray(to)]);
		case 3:
			return Buffer.concat([bytes.subarray(0, to), bytes.subarray(at)]);
		case 4:
			return Buffer.concat([bytes.subarray(0, at), Buffer.from(random.pick(LITTLE)), bytes.subarray(at)]);
		case 5: {
			const more = Buffer.from(Array.from({ length: random.int(1, 64) }, () => random.int(0, 255)));
			return Buffer.concat([bytes.subarray(0, at), more, bytes.subarray(at)]);
		}
		case 6:
			return Buffer.concat([
				bytes.subarray(0, at),
				Buffer.alloc(random.int(1, 20_000), random.int(0, 255)),
				bytes.subarray(at),
			]);
		case 7:
			return withEdge(bytes, random);
		default: {
			const wide = Buffer.from(bytes);
			if (at + 4 <= length) wide.writeUInt32BE(random.pick([0, 1, 0x7fffffff, 0x80000000, 0xffffffff]), at);
			return wide;
		}
	}
}

function withEdge(bytes: Buffer, random: Random): Buffer<ArrayBuffer> {
	const text = bytes.toString("latin1");
	const numbers = [...text.slice(0, 100_000).matchAll(/-?\d+(\.\d+)?/g)];
	if (numbers.length === 0) return Buffer.from(bytes);
	const { index, 0: found } = random.pick(numbers);
	return Buffer.from(text.slice(0, index) + random.pick(EDGES) + text.slice(index + found.length), "latin1");
}
