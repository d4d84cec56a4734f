import { inconsistentFault } from "./walk.ts";

/** Header data that the length of Vorbis packets depends on (Vorbis I specification, sections 4.2 and 4.3). */
export interface VorbisModes {
	readonly rate: number;
	/** Block size of each mode in samples. */
	readonly blocks: readonly number[];
	/** Mask for the mode's number in a packet's first byte, after the lowest bit. */
	readonly mask: number;
}

const MODES_MAX = 64;
/** Bits of a mode in the setup header: flag, window, transform, mapping. */
const MODE_BITS = 1 + 16 + 16 + 8;
/** Bits of the number of modes, which precedes the first mode. The other modes follow the 41 bits of another mode. */
const COUNT_BITS = 6;

export function readVorbisModes(identification: Buffer, setup: Buffer): VorbisModes {
	if (identification.length < 30 || setup.length < 16) throw inconsistentFault("its Vorbis headers are cut off");
	const rate = identification.readUInt32LE(12);
	const sizes = identification[28] as number;
	if (rate === 0) throw inconsistentFault("its sample rate is missing");
	const flags = modeFlags(setup);
	const blocks = flags.map((long) => 1 << (long ? sizes >> 4 : sizes & 15));
	return { rate, blocks, mask: (1 << Math.ceil(Math.log2(flags.length))) - 1 };
}

/** Samples that a packet adds: a quarter of the previous block plus a quarter of its own block; 0 for the first. */
export function vorbisSamples(modes: VorbisModes, first: number, before: number): { samples: number; block: number } {
	const block = modes.blocks[(first >> 1) & modes.mask];
	if (block === undefined) throw inconsistentFault("a Vorbis packet has an unknown mode");
	return { samples: before === 0 ? 0 : before / 4 + block / 4, block };
}

/**
 * For each mode, whether its blocks are long. Modes are at the setup header's end, so they are read backwards: two of
 * their fields are zero, and the number of modes precedes the first.
 */
function modeFlags(setup: Buffer): boolean[] {
	const bitAt = (place: number) => ((setup[place >> 3] as number) >> (place & 7)) & 1;
	const read = (place: number, bits: number) => {
		let value = 0;
		for (let bit = bits - 1; bit >= 0; bit -= 1) value = value * 2 + bitAt(place + bit);
		return value;
	};
	let end = setup.length * 8 - 1;
	while (end > 0 && bitAt(end) === 0) end -= 1;
	const flags: boolean[] = [];
	let found: boolean[] | undefined;
	for (let at = end - MODE_BITS; at >= COUNT_BITS + 56 && flags.length < MODES_MAX; at -= MODE_BITS) {
		if (read(at + 33, 8) > 63 || read(at + 1, 16) !== 0 || read(at + 17, 16) !== 0) break;
		flags.unshift(bitAt(at) === 1);
		if (read(at - COUNT_BITS, COUNT_BITS) + 1 === flags.length) found = [...flags];
	}
	if (found === undefined) throw inconsistentFault("its Vorbis headers cannot be read");
	return found;
}
