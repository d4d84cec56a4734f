import { walkFlac } from "./recording/flac.ts";
import { id3TagBytes, walkMp3 } from "./recording/mp3.ts";
import { walkMp4 } from "./recording/mp4.ts";
import { walkOgg } from "./recording/ogg.ts";
import {
	inconsistentFault,
	type MeasuredRecording,
	type RecordingWalk,
	runWalk,
	unsupportedFault,
} from "./recording/walk.ts";
import { walkWav } from "./recording/wav.ts";
import { walkWebm } from "./recording/webm.ts";

/**
 * Length of a recording, measured by its frames and compared with its headers. A file whose headers contradict its
 * frames is refused, because decoders disagree about its length.
 */
export interface AudioDuration {
	/** Upper bound in whole seconds: this amount is reserved, and no more is charged. */
	readonly secondsMax: number;
	/** Whole seconds of the frames: charged if the upstream server reports no duration. */
	readonly secondsLikely: number;
}

const SECONDS_MAX = 24 * 60 * 60;
/** Minimum share of the measured length that headers may claim: encoders count padding and cut frames differently. */
const SHARE_MIN = 0.9;
const GRACE_S = 1;
/** Maximum padding of the first and last frame. It is not charged if the headers claim a length without it. */
const PADDING_S = 0.25;
/** Tolerance for rounding errors in sums over many frames. */
const ROUNDING_S = 1e-4;
const TAGS_MAX = 16;

export async function audioDuration(file: Blob): Promise<AudioDuration> {
	const { seconds, secondsMax, claimed } = await measured(file);
	if (!(seconds > 0)) throw inconsistentFault("it contains no audio");
	if (claimed !== undefined && isFarLess(claimed, seconds))
		throw inconsistentFault(`it claims ${claimed.toFixed(1)} s but contains ${seconds.toFixed(1)} s of audio`);
	if (isFarLess(seconds, secondsMax)) throw inconsistentFault("it contains more data than its frames");
	if (!(secondsMax <= SECONDS_MAX)) throw unsupportedFault("it is longer than 24 hours");
	const isPadded = claimed !== undefined && claimed < seconds && claimed > seconds - PADDING_S;
	return {
		secondsMax: wholeSeconds(Math.max(seconds, secondsMax)),
		secondsLikely: wholeSeconds(isPadded ? claimed : seconds),
	};
}

/** Measures a file. If a parser reads beyond the end of a part, it throws a RangeError, which becomes a Fault here. */
async function measured(file: Blob): Promise<MeasuredRecording> {
	try {
		return await runWalk(file, walkRecording(file.size));
	} catch (error) {
		if (error instanceof RangeError) throw inconsistentFault("it is truncated");
		throw error;
	}
}

const wholeSeconds = (seconds: number): number => Math.max(1, Math.ceil(seconds - ROUNDING_S));

const isFarLess = (seconds: number, than: number): boolean => seconds < than * SHARE_MIN - GRACE_S;

/** Detects the format by the first bytes after tags, as decoders do. Ignores file name and content type. */
function* walkRecording(size: number): RecordingWalk {
	let at = 0;
	let head = yield at;
	const firstTag = id3TagBytes(head, 0);
	for (let tag = 0; tag < TAGS_MAX && id3TagBytes(head, 0) > 0; tag += 1) {
		at += id3TagBytes(head, 0);
		head = yield at;
	}
	const text = (from: number, to: number) => head.toString("latin1", from, to);
	if (text(0, 4) === "RIFF" && text(8, 12) === "WAVE") return yield* walkWav(at, size);
	if (text(0, 4) === "fLaC") return yield* walkFlac(at, size);
	if (text(0, 4) === "OggS") return yield* walkOgg(at, size);
	if (text(4, 8) === "ftyp") return yield* walkMp4(at, size);
	if (text(0, 4) === "\x1aE\xdf\xa3") return yield* walkWebm(at, size);
	// MP3. Skips only the first tag, as some decoders do.
	if (at > 0 || (head[0] === 0xff && ((head[1] ?? 0) & 0xe0) === 0xe0)) return yield* walkMp3(firstTag, size);
	throw unsupportedFault("it is not FLAC, MP3, MP4, M4A, Ogg, WAV or WebM");
}
