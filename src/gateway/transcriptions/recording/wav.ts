import { inconsistentFault, type RecordingWalk, unsupportedFault } from "./walk.ts";

/** Maximum number of samples per channel and byte of compressed formats with a fixed rate, by format number. */
const SAMPLES_PER_BYTE: Readonly<Record<number, number>> = { 2: 2, 17: 2, 49: 320 / 65 };
/** Numbers of the uncompressed formats: integers, floats, A-law, µ-law. */
const PLAIN = new Set([1, 3, 6, 7]);
const EXTENSIBLE = 0xfffe;
/** Placeholder lengths written by recorders that did not know the length at the start. */
const UNKNOWN_LENGTHS = new Set([0, 0xffffffff]);
const CHUNKS_MAX = 10_000;

/**
 * RIFF/WAVE (Microsoft's "Multimedia Programming Interface"): sums the chunks of samples. `secondsMax` covers all bytes
 * from the first chunk to the file's end, for decoders that ignore chunk sizes.
 */
export function* walkWav(start: number, size: number): RecordingWalk {
	let at = start + 12;
	let window = yield at;
	let windowAt = at;
	let secondsPerByte = 0;
	let firstSound = 0;
	let soundBytes = 0;
	for (let chunk = 0; at + 8 <= size; chunk += 1) {
		if (chunk === CHUNKS_MAX) throw inconsistentFault("it has too many parts");
		if (at + 64 > windowAt + window.length && windowAt + window.length < size) {
			windowAt = at;
			window = yield at;
		}
		const name = window.toString("latin1", at - windowAt, at - windowAt + 4);
		if (!/^[ -~]{4}$/.test(name)) throw inconsistentFault("there are unknown bytes after its samples");
		const body = at + 8;
		let length = window.readUInt32LE(at - windowAt + 4);
		if (name === "fmt " && secondsPerByte !== 0) throw inconsistentFault("it has two formats");
		if (name === "fmt ") secondsPerByte = readFormat(window.subarray(body - windowAt, body - windowAt + length));
		if (name === "data") {
			if (secondsPerByte === 0) throw inconsistentFault("its samples come before their format");
			if (UNKNOWN_LENGTHS.has(length)) length = size - body;
			length = Math.min(length, size - body);
			firstSound ||= body;
			soundBytes += length;
		}
		at = body + length + (length % 2);
	}
	if (firstSound === 0) throw inconsistentFault("it has no samples");
	return { seconds: soundBytes * secondsPerByte, secondsMax: (size - firstSound) * secondsPerByte };
}

function readFormat(format: Buffer): number {
	if (format.length < 16) throw inconsistentFault("its format is cut off");
	const channels = format.readUInt16LE(2);
	const rate = format.readUInt32LE(4);
	const bits = format.readUInt16LE(14);
	const plain = format.readUInt16LE(0) === EXTENSIBLE && format.length >= 26 ? format.readUInt16LE(24) : undefined;
	const kind = plain ?? format.readUInt16LE(0);
	if (channels === 0 || rate === 0) throw inconsistentFault("its format has no channels or no sample rate");
	const perByte = PLAIN.has(kind) && bits > 0 ? 1 / Math.ceil(bits / 8) : SAMPLES_PER_BYTE[kind];
	if (perByte === undefined) throw unsupportedFault(`WAV of the compressed kind ${kind}`);
	return perByte / (channels * rate);
}
