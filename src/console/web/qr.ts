/**
 * QR codes after ISO/IEC 18004: byte mode, error correction L, versions 1 to 15 (up to 520 bytes), mask 0 of the eight
 * (a chooser of masks only helps badly printed codes). Enough to bring a secret from a screen to a phone.
 */

const VERSION_MAX = 15;
/** Of level L, by version from 1. */
const ECC_PER_BLOCK = [7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22] as const;
const BLOCKS = [1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6] as const;
const FORMAT_L_MASK_0 = 0b111011111000100;

/** Rows of dark modules, or undefined if the text is too long. */
export function qrModules(text: string): boolean[][] | undefined {
	const bytes = new TextEncoder().encode(text);
	for (let version = 1; version <= VERSION_MAX; version += 1) {
		const lengthBits = version < 10 ? 8 : 16;
		if (4 + lengthBits + bytes.length * 8 <= dataCodewords(version) * 8) {
			return draw(version, withCorrection(version, encode(version, bytes, lengthBits)));
		}
	}
	return undefined;
}

function encode(version: number, bytes: Uint8Array, lengthBits: number): number[] {
	const bits: number[] = [];
	const push = (value: number, count: number) => {
		for (let bit = count - 1; bit >= 0; bit -= 1) bits.push((value >>> bit) & 1);
	};
	push(0b0100, 4);
	push(bytes.length, lengthBits);
	for (const byte of bytes) push(byte, 8);
	const capacity = dataCodewords(version) * 8;
	push(0, Math.min(4, capacity - bits.length));
	push(0, (8 - (bits.length % 8)) % 8);
	for (let pad = 0xec; bits.length < capacity; pad ^= 0xec ^ 0x11) push(pad, 8);
	const words: number[] = [];
	for (let at = 0; at < bits.length; at += 8) words.push(bits.slice(at, at + 8).reduce((sum, bit) => sum * 2 + bit, 0));
	return words;
}

/** Splits into blocks, adds Reed-Solomon words to each, interleaves. */
function withCorrection(version: number, data: readonly number[]): number[] {
	const count = BLOCKS[version - 1] ?? 1;
	const eccLength = ECC_PER_BLOCK[version - 1] ?? 7;
	const total = Math.floor(rawModules(version) / 8);
	const shortCount = count - (total % count);
	const shortLength = Math.floor(total / count) - eccLength;
	const divisor = generator(eccLength);
	const blocks: { data: number[]; ecc: number[] }[] = [];
	let at = 0;
	for (let index = 0; index < count; index += 1) {
		const length = shortLength + (index < shortCount ? 0 : 1);
		const part = data.slice(at, at + length);
		at += length;
		blocks.push({ data: part, ecc: remainder(part, divisor) });
	}
	const words: number[] = [];
	for (let place = 0; place <= shortLength; place += 1) {
		for (const block of blocks) if (place < block.data.length) words.push(block.data[place] ?? 0);
	}
	for (let place = 0; place < eccLength; place += 1) for (const block of blocks) words.push(block.ecc[place] ?? 0);
	return words;
}

function draw(version: number, words: readonly number[]): boolean[][] {
	const size = version * 4 + 17;
	const dark = Array.from({ length: size }, () => new Array<boolean>(size).fill(false));
	const fixed = Array.from({ length: size }, () => new Array<boolean>(size).fill(false));
	const set = (x: number, y: number, value: boolean) => {
		const row = dark[y];
		const fixedRow = fixed[y];
		if (!row || !fixedRow || x < 0 || x >= size) return;
		row[x] = value;
		fixedRow[x] = true;
	};
	for (let at = 0; at < size; at += 1) {
		set(6, at, at % 2 === 0);
		set(at, 6, at % 2 === 0);
	}
	for (const [cx, cy] of [
		[3, 3],
		[size - 4, 3],
		[3, size - 4],
	] as const) {
		for (let dy = -4; dy <= 4; dy += 1) {
			for (let dx = -4; dx <= 4; dx += 1) {
				const ring = Math.max(Math.abs(dx), Math.abs(dy));
				set(cx + dx, cy + dy, ring !== 2 && ring !== 4);
			}
		}
	}
	drawAlignment(version, size, set);
	drawFormat(size, set);
	if (version >= 7) drawVersion(version, size, set);
	fill(dark, fixed, words);
	return dark;
}

type Set = (x: number, y: number, value: boolean) => void;

function drawAlignment(version: number, size: number, set: Set): void {
	if (version === 1) return;
	const count = Math.floor(version / 7) + 2;
	const step = Math.ceil((version * 4 + 4) / (count * 2 - 2)) * 2;
	const places = [6];
	for (let at = size - 7; places.length < count; at -= step) places.splice(1, 0, at);
	const last = size - 7;
	for (const cx of places) {
		for (const cy of places) {
			if ((cx === 6 && cy === 6) || (cx === 6 && cy === last) || (cx === last && cy === 6)) continue;
			for (let dy = -2; dy <= 2; dy += 1) {
				for (let dx = -2; dx <= 2; dx += 1) set(cx + dx, cy + dy, Math.max(Math.abs(dx), Math.abs(dy)) !== 1);
			}
		}
	}
}

function drawFormat(size: number, set: Set): void {
	const bit = (at: number) => ((FORMAT_L_MASK_0 >>> at) & 1) === 1;
	for (let at = 0; at <= 5; at += 1) set(8, at, bit(at));
	set(8, 7, bit(6));
	set(8, 8, bit(7));
	set(7, 8, bit(8));
	for (let at = 9; at < 15; at += 1) set(14 - at, 8, bit(at));
	for (let at = 0; at < 8; at += 1) set(size - 1 - at, 8, bit(at));
	for (let at = 8; at < 15; at += 1) set(8, size - 15 + at, bit(at));
	set(8, size - 8, true);
}

function drawVersion(version: number, size: number, set: Set): void {
	let rest = version;
	for (let step = 0; step < 12; step += 1) rest = (rest << 1) ^ ((rest >>> 11) * 0x1f25);
	const bits = (version << 12) | rest;
	for (let at = 0; at < 18; at += 1) {
		const value = ((bits >>> at) & 1) === 1;
		const a = size - 11 + (at % 3);
		const b = Math.floor(at / 3);
		set(a, b, value);
		set(b, a, value);
	}
}

/** In columns of two from the right, up and down in turn; mask 0 turns over where x + y is even. */
function fill(dark: boolean[][], fixed: readonly boolean[][], words: readonly number[]): void {
	const size = dark.length;
	let at = 0;
	for (let right = size - 1; right >= 1; right -= 2) {
		if (right === 6) right = 5;
		for (let step = 0; step < size; step += 1) {
			for (let column = 0; column < 2; column += 1) {
				const x = right - column;
				const y = ((right + 1) & 2) === 0 ? size - 1 - step : step;
				const row = dark[y];
				if (!row || fixed[y]?.[x]) continue;
				const bit = ((words[at >>> 3] ?? 0) >>> (7 - (at & 7))) & 1;
				row[x] = (bit === 1) !== ((x + y) % 2 === 0);
				at += 1;
			}
		}
	}
}

function rawModules(version: number): number {
	let count = (16 * version + 128) * version + 64;
	if (version >= 2) {
		const alignments = Math.floor(version / 7) + 2;
		count -= (25 * alignments - 10) * alignments - 55;
		if (version >= 7) count -= 36;
	}
	return count;
}

function dataCodewords(version: number): number {
	return Math.floor(rawModules(version) / 8) - (ECC_PER_BLOCK[version - 1] ?? 0) * (BLOCKS[version - 1] ?? 0);
}

function generator(degree: number): number[] {
	const result = new Array<number>(degree).fill(0);
	result[degree - 1] = 1;
	let root = 1;
	for (let step = 0; step < degree; step += 1) {
		for (let at = 0; at < degree; at += 1) {
			result[at] = multiply(result[at] ?? 0, root) ^ (result[at + 1] ?? 0);
		}
		root = multiply(root, 2);
	}
	return result;
}

function remainder(data: readonly number[], divisor: readonly number[]): number[] {
	const result = divisor.map(() => 0);
	for (const word of data) {
		const factor = word ^ (result.shift() ?? 0);
		result.push(0);
		for (const [at, coefficient] of divisor.entries()) result[at] = (result[at] ?? 0) ^ multiply(coefficient, factor);
	}
	return result;
}

/** In the field of 256 elements modulo x^8 + x^4 + x^3 + x^2 + 1. */
function multiply(a: number, b: number): number {
	let product = 0;
	for (let bit = 7; bit >= 0; bit -= 1) {
		product = (product << 1) ^ ((product >>> 7) * 0x11d);
		product ^= ((b >>> bit) & 1) * a;
	}
	return product;
}
