import { inconsistentFault, type RecordingWalk } from "./walk.ts";

/** Bit rates in kbit/s by index, for version (1, or 2 and 2.5) and layer: ISO 11172-3 and 13818-3. */
const KBITS: Readonly<Record<string, readonly number[]>> = {
	"1-1": [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
	"1-2": [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
	"1-3": [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
	"2-1": [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
	"2-2": [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
	"2-3": [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
};
const RATES = [44_100, 48_000, 32_000];
/** Longest MP3 frame. This many bytes are read wherever a frame may start. */
const FRAME_BYTES_MAX = 2_900;
/** Maximum number of bytes between frames, such as part of a frame at a stream's start. Zeros and tags do not count. */
const JUNK_BYTES_MAX = 64 * 1024;
/** Lowest bit rate (8 kbit/s): bounds the seconds that a decoder could find in unknown bytes. */
const BYTES_PER_SECOND_MIN = 1_000;

/**
 * MP3: sums all frames. Ignores the number of frames that the first frame states, because it is wrong in joined and cut
 * files, which are common.
 */
export function* walkMp3(start: number, size: number): RecordingWalk {
	let at = start;
	let windowAt = at;
	let window = yield at;
	let seconds = 0;
	let junk = 0;
	let tagEnd = start;
	let frames = 0;
	let kind: number | undefined;
	while (at + 4 <= size) {
		if (at + 2 * FRAME_BYTES_MAX > windowAt + window.length && windowAt + window.length < size) {
			windowAt = at;
			window = yield at;
		}
		const here = at - windowAt;
		const frame = frameAt(window, here);
		if (frame !== undefined && (frame.kind === kind || isFollowed(window, here, frame, windowAt, size))) {
			frames += 1;
			seconds += frame.seconds;
			at += frame.bytes;
			kind = frame.kind;
			continue;
		}
		kind = undefined;
		// Tags do not count as unknown data. They are searched for frames, because decoders do that after the first frame.
		if (at >= tagEnd) tagEnd = at + tagBytes(window, here, size - at);
		if (at >= tagEnd && window[here] !== 0) junk += 1;
		if (junk > JUNK_BYTES_MAX) throw inconsistentFault("it has too many bytes between its frames");
		at += 1;
	}
	if (frames < 2) throw inconsistentFault("it has no MP3 frames");
	return { seconds, secondsMax: seconds + junk / BYTES_PER_SECOND_MIN };
}

/** True if a frame of the same kind, a tag or the file's end follows. A single frame of another kind is no evidence. */
function isFollowed(window: Buffer, here: number, frame: Frame, windowAt: number, size: number): boolean {
	const next = here + frame.bytes;
	if (windowAt + next + 4 > size) return true;
	return frameAt(window, next)?.kind === frame.kind || tagBytes(window, next, size - windowAt - next) > 0;
}

function frameAt(bytes: Buffer, at: number) {
	if (at + 4 > bytes.length || bytes[at] !== 0xff) return undefined;
	const header = bytes.readUInt32BE(at);
	const version = (header >>> 19) & 3;
	const layer = 4 - ((header >>> 17) & 3);
	const rate = RATES[(header >>> 10) & 3];
	if (header >>> 21 !== 0x7ff || version === 1 || layer === 4 || rate === undefined) return undefined;
	const first = version === 3;
	const kbits = KBITS[`${first ? 1 : 2}-${layer}`]?.[(header >>> 12) & 15];
	if (kbits === undefined || kbits === 0) return undefined;
	const sampleRate = rate / (first ? 1 : version === 2 ? 2 : 4);
	const samples = layer === 1 ? 384 : layer === 3 && !first ? 576 : 1_152;
	const padding = (header >>> 9) & 1;
	const slot = layer === 1 ? 4 : 1;
	const size = (Math.floor((samples * kbits * 125) / sampleRate / slot) + padding) * slot;
	// The kind consists of version, layer and sample rate.
	return { bytes: size, seconds: samples / sampleRate, kind: header & 0x001e0c00 };
}
type Frame = NonNullable<ReturnType<typeof frameAt>>;

/** Length of the tag that starts at `at`; 0 if none starts there. */
function tagBytes(bytes: Buffer, at: number, rest: number): number {
	const first = bytes[at];
	// Tags start with "I", "T" or "A".
	if (first !== 0x49 && first !== 0x54 && first !== 0x41) return 0;
	const name = bytes.toString("latin1", at, at + 3);
	if (name === "ID3") return Math.min(rest, id3TagBytes(bytes, at));
	if (name === "TAG" && rest === 128) return rest;
	if (name === "APE" && bytes.toString("latin1", at, at + 8) === "APETAGEX" && at + 32 <= bytes.length)
		return Math.min(rest, 32 + bytes.readUInt32LE(at + 12));
	return 0;
}

/** Length of an ID3v2 tag; 0 if none starts at `at`. Refuses a size that decoders read differently. */
export function id3TagBytes(bytes: Buffer, at: number): number {
	if (at + 10 > bytes.length || bytes.toString("latin1", at, at + 3) !== "ID3") return 0;
	let size = 0;
	for (let place = at + 6; place < at + 10; place += 1) size = size * 128 + (bytes[place] as number);
	const isOdd = [3, 4, 6, 7, 8, 9].some((place) => (bytes[at + place] as number) > (place < 6 ? 254 : 127));
	if (isOdd) throw inconsistentFault("its ID3 tag has an invalid size");
	const hasFooter = ((bytes[at + 5] as number) & 0x10) !== 0;
	return 10 + size + (hasFooter ? 10 : 0);
}
