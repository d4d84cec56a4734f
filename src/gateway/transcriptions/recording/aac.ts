import { inconsistentFault, unsupportedFault } from "./walk.ts";

/** Sample rates by index: ISO 14496-3, 1.6.3.4. */
const RATES = [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350];
/** AAC object types with frames of at most 1,024 samples: main, LC, SSR, LTP, SBR, the low-delay types, PS. */
const TYPES = new Set([1, 2, 3, 4, 5, 17, 23, 29, 39]);
const FRAME_SAMPLES_MAX = 1_024;

/** Longest duration of a frame in seconds, derived from an AudioSpecificConfig. */
export function aacFrameSeconds(config: Buffer): number {
	if (config.length < 2) throw inconsistentFault("its AAC configuration is cut off");
	const type = (config[0] as number) >> 3;
	const index = (((config[0] as number) & 7) << 1) | ((config[1] as number) >> 7);
	if (!TYPES.has(type)) throw unsupportedFault(`AAC of type ${type}`);
	if (index === 15 && config.length < 5) throw inconsistentFault("its AAC configuration is cut off");
	const rate = index === 15 ? Math.floor(config.readUIntBE(1, 4) / 128) % 2 ** 24 : RATES[index];
	if (rate === undefined || rate === 0) throw inconsistentFault("its AAC configuration has no sample rate");
	return FRAME_SAMPLES_MAX / rate;
}

/** Finds the AudioSpecificConfig in the body of an `esds` box (ISO 14496-1, 7.2.6: nested descriptors). */
export function findAacConfig(esds: Buffer): Buffer {
	let at = 4;
	for (let depth = 0; depth < 8; depth += 1) {
		const tag = esds[at];
		let length = 0;
		let more = true;
		for (let step = 0; step < 4 && more; step += 1) {
			at += 1;
			more = ((esds[at] ?? 0) & 0x80) !== 0;
			length = length * 128 + ((esds[at] ?? 0) & 127);
		}
		at += 1;
		if (tag === 5) return esds.subarray(at, at + length);
		if (tag === 3) at += streamHeaderBytes(esds[at + 2] ?? 0, esds[at + 3] ?? 0);
		else if (tag === 4) {
			if (esds[at] !== 0x40) throw unsupportedFault("its audio is not AAC");
			at += 13;
		} else break;
	}
	throw inconsistentFault("its AAC configuration is missing");
}

/** Length of a stream descriptor's header: its number and flags, and the fields that the flags announce. */
function streamHeaderBytes(flags: number, urlLength: number): number {
	return 3 + (flags & 0x80 ? 2 : 0) + (flags & 0x40 ? 1 + urlLength : 0) + (flags & 0x20 ? 2 : 0);
}
