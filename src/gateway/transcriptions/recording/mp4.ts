import { aacFrameSeconds, findAacConfig } from "./aac.ts";
import { inconsistentFault, type MeasuredRecording, type RecordingWalk, unsupportedFault } from "./walk.ts";

/** Boxes whose child boxes are read. */
const HOLDERS = new Set(["trak", "mdia", "minf", "stbl", "edts", "mvex", "traf"]);
const DEPTH_MAX = 8;
/** Boxes that a track may have only once: if there are two, decoders differ in which they use. */
const ONCE = new Set(["mdhd", "stsd", "stts", "stsz", "elst"]);
const TRACKS_MAX = 64;
/** Largest total size of tables, enough for a day of audio. */
const TABLES_BYTES_MAX = 8 * 1024 * 1024;
/** Seconds by which an edit list may exceed the audio, because of rounding. */
const EDIT_GRACE_S = 1;

class Track {
	readonly seen = new Set<string>();
	id = 0;
	isSound = false;
	description: Buffer | undefined = undefined;
	frames = 0;
	frameBytesDefault = 0;
	timescale = 0;
	/** Length in ticks of `timescale`: by the track's header, and by its table of times; 0 if unknown. */
	duration = 0;
	timesTotal = 0;
	/** Ticks that the edit list plays, and ticks of silence that it inserts. */
	edited = 0;
	silence = 0;
}

class Movie {
	readonly tracks: Track[] = [];
	timescale = 0;
	duration = 0;
	frameBytes = 0;
	inFragments = false;
	/** Track of the fragment that is being read, and the size of the fragment's frames. */
	fragment: Track | undefined = undefined;
	fragmentFrameBytes = 0;
}

/**
 * MP4, M4A and QuickTime (ISO 14496-12) with AAC or ALAC, whole or in fragments: number of frames in the tables times a
 * frame's length. Times and durations are only claims. Tables that list more bytes than the file has are refused.
 */
export function* walkMp4(start: number, size: number): RecordingWalk {
	const movie = new Movie();
	let windowAt = start;
	let window = yield start;
	for (let at = start; at + 8 <= size; ) {
		if (at + 16 > windowAt + window.length && windowAt + window.length < size) {
			windowAt = at;
			window = yield at;
		}
		const box = boxAt(window, at - windowAt, size - windowAt);
		if (box.name === "moov" || box.name === "moof") {
			const bytes = box.end - box.body;
			if (bytes > TABLES_BYTES_MAX) throw inconsistentFault("its tables are too large");
			const isHere = box.end <= window.length;
			const tables = isHere ? window.subarray(box.body, box.end) : yield { at: windowAt + box.body, bytes };
			movie.inFragments ||= box.name === "moof";
			readBoxes(movie, tables, 0);
		}
		at = windowAt + box.end;
	}
	return measure(movie, size);
}

/** Box at `at` inside a parent that ends at `end`. Only the audio data (`mdat`) may extend beyond the file's end. */
function boxAt(bytes: Buffer, at: number, end: number): { name: string; body: number; end: number } {
	const name = bytes.toString("latin1", at + 4, at + 8);
	let length = bytes.readUInt32BE(at);
	let header = 8;
	if (length === 1 && at + 16 <= bytes.length) {
		length = Number(bytes.readBigUInt64BE(at + 8));
		header = 16;
	} else if (length === 0) length = end - at;
	if (name === "mdat") length = Math.min(length, end - at);
	if (length < header || at + length > end) throw inconsistentFault("its parts overlap");
	return { name, body: at + header, end: at + length };
}

function readBoxes(movie: Movie, bytes: Buffer, depth: number): void {
	if (depth > DEPTH_MAX) throw inconsistentFault("its parts are nested too deeply");
	for (let at = 0; at + 8 <= bytes.length; ) {
		const box = boxAt(bytes, at, bytes.length);
		const body = bytes.subarray(box.body, box.end);
		if (box.name === "trak" && movie.tracks.push(new Track()) > TRACKS_MAX)
			throw inconsistentFault("it has too many tracks");
		if (box.name === "traf") movie.fragment = undefined;
		if (HOLDERS.has(box.name)) readBoxes(movie, body, depth + 1);
		else {
			const read = READERS[box.name];
			if (read !== undefined) {
				const track = movie.tracks.at(-1);
				if (ONCE.has(box.name) && track?.seen.has(box.name))
					throw inconsistentFault(`a track has two boxes ${box.name}`);
				track?.seen.add(box.name);
				read(body, movie, track);
			}
		}
		at = box.end;
	}
}

type Reader = (body: Buffer, movie: Movie, track: Track | undefined) => void;

/** Readers by the name of their box. Reading beyond a box's end throws a RangeError. */
const READERS: Readonly<Record<string, Reader>> = {
	mvhd: (body, movie) => Object.assign(movie, readTimes(body)),
	mdhd: (body, _, track) => track && Object.assign(track, readTimes(body)),
	tkhd(body, _, track) {
		if (track) track.id = body.readUInt32BE(body[0] === 1 ? 20 : 12);
	},
	hdlr(body, _, track) {
		// QuickTime tracks have a second `hdlr` box, for their data.
		if (track) track.isSound ||= body.toString("latin1", 8, 12) === "soun";
	},
	stsd(body, _, track) {
		if (track) track.description = body;
	},
	stts(body, _, track) {
		const count = body.readUInt32BE(4);
		let total = 0;
		for (let entry = 0; entry < count; entry += 1)
			total += body.readUInt32BE(8 + entry * 8) * body.readUInt32BE(12 + entry * 8);
		if (track) track.timesTotal = total;
	},
	stsz(body, movie, track) {
		const each = body.readUInt32BE(4);
		const count = body.readUInt32BE(8);
		let sum = each * count;
		if (each === 0) for (let entry = 0; entry < count; entry += 1) sum += body.readUInt32BE(12 + entry * 4);
		movie.frameBytes += sum;
		if (track) track.frames += count;
	},
	stz2() {
		throw unsupportedFault("its size table (stz2) is not supported");
	},
	elst(body, _, track) {
		const long = body[0] === 1;
		const count = body.readUInt32BE(4);
		for (let entry = 0; entry < count; entry += 1) {
			const at = 8 + entry * (long ? 20 : 12);
			const ticks = long ? Number(body.readBigUInt64BE(at)) : body.readUInt32BE(at);
			const isSilence = long ? body.readBigInt64BE(at + 8) < 0n : body.readInt32BE(at + 4) < 0;
			if (track && isSilence) track.silence += ticks;
			else if (track) track.edited += ticks;
		}
	},
	trex(body, movie) {
		const track = movie.tracks.find(({ id }) => id === body.readUInt32BE(4));
		if (track) track.frameBytesDefault = body.readUInt32BE(16);
	},
	tfhd(body, movie) {
		const flags = body.readUInt32BE(0);
		movie.fragment = movie.tracks.find(({ id }) => id === body.readUInt32BE(4));
		const at = 8 + (flags & 1 ? 8 : 0) + (flags & 2 ? 4 : 0) + (flags & 8 ? 4 : 0);
		movie.fragmentFrameBytes = flags & 0x10 ? body.readUInt32BE(at) : (movie.fragment?.frameBytesDefault ?? 0);
	},
	trun(body, movie) {
		const flags = body.readUInt32BE(0);
		const count = body.readUInt32BE(4);
		const first = 8 + (flags & 1 ? 4 : 0) + (flags & 4 ? 4 : 0);
		const width = [0x100, 0x200, 0x400, 0x800].reduce((sum, flag) => sum + (flags & flag ? 4 : 0), 0);
		let sum = flags & 0x200 ? 0 : count * movie.fragmentFrameBytes;
		const sizeAt = first + (flags & 0x100 ? 4 : 0);
		if (flags & 0x200) for (let entry = 0; entry < count; entry += 1) sum += body.readUInt32BE(sizeAt + entry * width);
		movie.frameBytes += sum;
		if (movie.fragment) movie.fragment.frames += count;
	},
};

function readTimes(body: Buffer): { timescale: number; duration: number } {
	const long = body[0] === 1;
	const timescale = body.readUInt32BE(long ? 20 : 12);
	const duration = long ? Number(body.readBigUInt64BE(24)) : body.readUInt32BE(16);
	const isUnknown = duration >= (long ? 2 ** 63 : 0xffffffff);
	return { timescale, duration: isUnknown ? 0 : duration };
}

/** Length of the longest audio track, because decoders may choose any track. */
function measure(movie: Movie, size: number): MeasuredRecording {
	const sounds = movie.tracks.filter(({ isSound, frames }) => isSound && frames > 0);
	if (sounds.length === 0) throw unsupportedFault("it has no audio track");
	if (movie.frameBytes > size) throw inconsistentFault("its tables list more bytes than the file has");
	let longest: MeasuredRecording = { seconds: 0, secondsMax: 0 };
	for (const track of sounds) {
		const seconds = track.frames * frameSecondsOf(track);
		const edited = movie.timescale === 0 ? 0 : track.edited / movie.timescale;
		if (edited > seconds + EDIT_GRACE_S) throw inconsistentFault("its edit list is longer than its audio");
		const silence = movie.timescale === 0 ? 0 : track.silence / movie.timescale;
		const claims = [
			[movie.duration, movie.timescale],
			[track.duration, track.timescale],
			[track.timesTotal, track.timescale],
		] as const;
		const said = movie.inFragments ? [] : claims.filter(([ticks]) => ticks > 0).map(([ticks, scale]) => ticks / scale);
		const claimed = said.length === 0 ? undefined : Math.min(...said);
		if (seconds > longest.seconds) longest = { seconds, secondsMax: seconds + silence, claimed };
	}
	return longest;
}

function frameSecondsOf({ description }: Track): number {
	if (description === undefined || description.length < 52 || description.readUInt32BE(4) !== 1)
		throw inconsistentFault("a track has no codec, or two");
	const kind = description.toString("latin1", 12, 16);
	// Child boxes follow the entry's header, the audio fields, and further fields of QuickTime's versions 1 and 2.
	const children = description.subarray(44 + ([0, 16, 36][description.readUInt16BE(24)] ?? 0));
	if (kind === "mp4a") return aacFrameSeconds(findAacConfig(childOf(children, "esds")));
	if (kind !== "alac") throw unsupportedFault(`sound of the kind ${JSON.stringify(kind)} in MP4`);
	const config = childOf(children, "alac");
	if (config.length < 28 || config.readUInt32BE(24) === 0) throw inconsistentFault("its ALAC configuration is cut off");
	return config.readUInt32BE(4) / config.readUInt32BE(24);
}

function childOf(bytes: Buffer, name: string): Buffer {
	for (let at = 0; at + 8 <= bytes.length; ) {
		const box = boxAt(bytes, at, bytes.length);
		const body = bytes.subarray(box.body, box.end);
		if (box.name === name) return body;
		if (box.name === "wave") return childOf(body, name);
		at = box.end;
	}
	throw inconsistentFault(`its box ${name} is missing`);
}
