import { walkFlac } from "./recording/flac.ts";
import { id3Bytes, walkMp3 } from "./recording/mp3.ts";
import { walkMp4 } from "./recording/mp4.ts";
import { walkOgg } from "./recording/ogg.ts";
import { contradiction, follow, type Measured, unsupported, type Walk } from "./recording/walk.ts";
import { walkWav } from "./recording/wav.ts";
import { walkWebm } from "./recording/webm.ts";

/**
 * How long a recording is, by its frames and never by what its headers say: those are only compared with it. A file
 * whose parts contradict each other is refused, since decoders would make different lengths of it; so is a kind that
 * cannot be measured. The bound is therefore one: no decoder finds more in the file.
 */
export interface AudioDuration {
	/** Whole seconds that no decoder finds more of: what is reserved, and the most that is charged. */
	readonly secondsMax: number;
	/** Whole seconds of its frames: what is charged where the upstream does not count. */
	readonly secondsLikely: number;
}

/** No recording is taken that is longer. */
const SECONDS_MAX = 24 * 60 * 60;
/** Encoders count their padding or leave it out, and cut off parts of frames; lies are larger. */
const SHARE_MIN = 0.9;
const GRACE_S = 1;
/** Encoders fill their first and last frames; where the recording says how much, that is not charged. */
const PADDING_S = 0.25;
/** Sums of many frames are off by less. */
const ROUNDING_S = 1e-4;
/** Tags before the recording. */
const TAGS_MAX = 16;

/** Fault invalid_request, which names the file. */
export async function audioDuration(file: Blob): Promise<AudioDuration> {
	const { seconds, secondsMax, claimed } = await measured(file);
	if (!(seconds > 0)) throw contradiction("it holds no sound");
	if (claimed !== undefined && isFarLess(claimed, seconds))
		throw contradiction(`it says that it lasts ${claimed.toFixed(1)} s and holds ${seconds.toFixed(1)} s of sound`);
	if (isFarLess(seconds, secondsMax)) throw contradiction("there is more in it than its frames");
	if (!(secondsMax <= SECONDS_MAX)) throw unsupported("it is longer than a day");
	const isPadded = claimed !== undefined && claimed < seconds && claimed > seconds - PADDING_S;
	return {
		secondsMax: wholeSeconds(Math.max(seconds, secondsMax)),
		secondsLikely: wholeSeconds(isPadded ? claimed : seconds),
	};
}

/** What a reader of any kind looks for beyond the end of a part, or in an empty one, is a RangeError. */
async function measured(file: Blob): Promise<Measured> {
	try {
		return await follow(file, walkRecording(file.size));
	} catch (error) {
		if (error instanceof RangeError) throw contradiction("a part of it is cut off");
		throw error;
	}
}

function wholeSeconds(seconds: number): number {
	return Math.max(1, Math.ceil(seconds - ROUNDING_S));
}

function isFarLess(seconds: number, than: number): boolean {
	return seconds < than * SHARE_MIN - GRACE_S;
}

/** By its first bytes behind tags, as decoders tell it: neither its name nor its type is believed. */
function* walkRecording(size: number): Walk {
	let at = 0;
	let head = yield at;
	const firstTag = id3Bytes(head, 0);
	for (let tag = 0; tag < TAGS_MAX && id3Bytes(head, 0) > 0; tag += 1) {
		at += id3Bytes(head, 0);
		head = yield at;
	}
	const text = (from: number, to: number) => head.toString("latin1", from, to);
	if (text(0, 4) === "RIFF" && text(8, 12) === "WAVE") return yield* walkWav(at, size);
	if (text(0, 4) === "fLaC") return yield* walkFlac(at, size);
	if (text(0, 4) === "OggS") return yield* walkOgg(at, size);
	if (text(4, 8) === "ftyp") return yield* walkMp4(at, size);
	if (text(0, 4) === "\x1aE\xdf\xa3") return yield* walkWebm(at, size);
	// Not every decoder knows more than one tag before the frames.
	if (at > 0 || (head[0] === 0xff && ((head[1] ?? 0) & 0xe0) === 0xe0)) return yield* walkMp3(firstTag, size);
	throw unsupported("it is no FLAC, MP3, MP4 or M4A, Ogg, WAV or WebM");
}
