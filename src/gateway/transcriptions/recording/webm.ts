import { aacFrameSeconds } from "./aac.ts";
import { type OggCodec, opusCodec, vorbisCodec } from "./ogg.ts";
import { readVorbisModes } from "./vorbis.ts";
import { inconsistentFault, type MeasuredRecording, type RecordingWalk, unsupportedFault } from "./walk.ts";

/** Ids of the elements that are read (RFC 9559), with their length marker. */
const ID = {
	ebml: 0x1a45dfa3,
	segment: 0x18538067,
	tracks: 0x1654ae6b,
	entry: 0xae,
	cluster: 0x1f43b675,
	blockGroup: 0xa0,
	simpleBlock: 0xa3,
	block: 0xa1,
	trackNumber: 0xd7,
	trackType: 0x83,
	codec: 0x86,
	codecPrivate: 0x63a2,
	encodings: 0x6d80,
} as const;
const HOLDERS: ReadonlySet<number> = new Set([ID.segment, ID.tracks, ID.entry, ID.cluster, ID.blockGroup]);
const FACTS: ReadonlySet<number> = new Set([ID.trackNumber, ID.trackType, ID.codec, ID.codecPrivate, ID.encodings]);
const DEPTH_MAX = 8;
const TRACKS_MAX = 64;
const SOUND = 2;
/** Largest element that is read completely; only blocks of video frames may be larger. */
const ELEMENT_BYTES_MAX = 48 * 1024;
const LACED_MAX = 256;

class Track {
	number = 0;
	type = 0;
	codec = "";
	setup = Buffer.alloc(0);
	encoded = false;
	sound: Pick<OggCodec, "seconds"> | undefined = undefined;
	seconds = 0;
	secondsMax = 0;
}

/**
 * Matroska and WebM with Opus, Vorbis or AAC: sums the packets of its blocks. Ignores timestamps, because browsers'
 * recordings have neither sizes nor a duration.
 */
export function* walkWebm(start: number, size: number): RecordingWalk {
	const tracks: Track[] = [];
	const ends: number[] = [size];
	let windowAt = start;
	let window = yield start;
	for (let at = start; at + 2 <= size; ) {
		while (ends.length > 1 && at >= (ends.at(-1) as number)) ends.pop();
		if (at + ELEMENT_BYTES_MAX > windowAt + window.length && windowAt + window.length < size) {
			windowAt = at;
			window = yield at;
		}
		const { id, length, header } = elementAt(window, at - windowAt);
		const body = at + header;
		const end = length === undefined ? (ends.at(-1) as number) : body + length;
		const isHolder = HOLDERS.has(id);
		const isBlock = id === ID.simpleBlock || id === ID.block;
		const isTorn = end > (ends.at(-1) as number);
		// A file that was cut off may end only in a block, or in an element that contains one.
		if (isTorn && !(end > size && (isBlock || isHolder) && ends.every((one) => one >= size)))
			throw inconsistentFault("its parts overlap");
		if (length === undefined && !isHolder) throw inconsistentFault("an element has no length");
		if (isHolder) {
			if (ends.length > DEPTH_MAX) throw inconsistentFault("its parts are nested too deeply");
			if (id === ID.entry && tracks.push(new Track()) > TRACKS_MAX) throw inconsistentFault("it has too many tracks");
			// An element of unknown size ends where the next element of its level starts, so both have the same depth.
			if (length !== undefined) ends.push(end);
			at = body;
			continue;
		}
		if (isBlock || FACTS.has(id)) {
			const bytes = window.subarray(body - windowAt, Math.min(end, size) - windowAt);
			if (isBlock) takeBlock(tracks, bytes);
			else readElement(tracks.at(-1), id, bytes);
		}
		at = end;
	}
	return measure(tracks);
}

function elementAt(window: Buffer, here: number) {
	const idBytes = Math.clz32((window[here] ?? 0) << 24) + 1;
	if (idBytes > 4 || here + idBytes + 1 > window.length) throw inconsistentFault("an element has no ID");
	const id = window.readUIntBE(here, idBytes);
	const { value, bytes } = sizeAt(window, here + idBytes);
	return { id, length: value, header: idBytes + bytes };
}

/** Reads a number of variable length; undefined if all its bits are set, which means an unknown size. */
function sizeAt(bytes: Buffer, at: number): { value: number | undefined; bytes: number } {
	const first = bytes[at] ?? 0;
	const length = Math.clz32(first << 24) + 1;
	if (length > 8 || at + length > bytes.length) throw inconsistentFault("a length is truncated");
	let value = first & (0xff >> length);
	let isUnknown = value === 0xff >> length;
	for (let place = at + 1; place < at + length; place += 1) {
		isUnknown &&= bytes[place] === 0xff;
		value = value * 256 + (bytes[place] as number);
	}
	if (!isUnknown && !Number.isSafeInteger(value)) throw inconsistentFault("a length is too large");
	return { value: isUnknown ? undefined : value, bytes: length };
}

function readElement(track: Track | undefined, id: number, bytes: Buffer): void {
	if (track === undefined || bytes.length > ELEMENT_BYTES_MAX) return;
	if (id === ID.trackNumber) track.number = bytes.readUIntBE(0, Math.min(6, bytes.length));
	else if (id === ID.trackType) track.type = bytes[0] ?? 0;
	else if (id === ID.codec) track.codec = bytes.toString("latin1").replace(/\0+$/, "");
	else if (id === ID.codecPrivate) track.setup = Buffer.from(bytes);
	else if (id === ID.encodings) track.encoded = true;
}

/** A block has the track, time and flags, then one packet or several (laced) packets. */
function takeBlock(tracks: readonly Track[], bytes: Buffer): void {
	const { value: number, bytes: numberBytes } = sizeAt(bytes, 0);
	const track = tracks.find((one) => one.number === number);
	if (track?.type !== SOUND) return;
	track.sound ??= codecOf(track);
	const lacing = ((bytes[numberBytes + 2] ?? 0) >> 1) & 3;
	for (const packet of lacing === 0
		? [bytes.subarray(numberBytes + 3)]
		: laced(bytes.subarray(numberBytes + 3), lacing)) {
		const { likely, max } = track.sound.seconds(packet.length, packet[0] ?? 0, packet[1] ?? 0);
		track.seconds += likely;
		track.secondsMax += max;
	}
}

/** Splits laced packets. 1: lengths as in Ogg; 2: equal lengths; 3: differences. The last packet takes what remains. */
function laced(bytes: Buffer, kind: number): Buffer[] {
	const count = (bytes[0] ?? 0) + 1;
	const lengths: number[] = [];
	let at = 1;
	if (kind === 2) lengths.push(...Array<number>(count - 1).fill((bytes.length - 1) / count));
	while (lengths.length < count - 1 && count <= LACED_MAX) {
		if (kind === 1) {
			let length = 0;
			while (bytes[at] === 255) length += bytes[at++] as number;
			lengths.push(length + (bytes[at++] ?? 0));
		} else {
			const { value = 0, bytes: width } = sizeAt(bytes, at);
			at += width;
			const middle = 2 ** (7 * width - 1) - 1;
			lengths.push(lengths.length === 0 ? value : (lengths.at(-1) as number) + value - middle);
		}
	}
	const packets: Buffer[] = [];
	for (const length of lengths) {
		if (!Number.isInteger(length) || length < 0 || at + length > bytes.length)
			throw inconsistentFault("a block is truncated");
		packets.push(bytes.subarray(at, at + length));
		at += length;
	}
	return [...packets, bytes.subarray(at)];
}

function codecOf({ codec, setup, encoded }: Track): Pick<OggCodec, "seconds"> {
	if (encoded) throw unsupportedFault("the sound in it is packed or encrypted");
	if (codec === "A_OPUS") return opusCodec(setup);
	if (codec === "A_AAC") {
		const seconds = aacFrameSeconds(setup);
		return { seconds: () => ({ likely: seconds, max: seconds }) };
	}
	if (codec !== "A_VORBIS") throw unsupportedFault(`sound of the kind ${JSON.stringify(codec.slice(0, 32))} in WebM`);
	// The three Vorbis headers, laced as in Ogg.
	const [identification, , last] = laced(setup, 1);
	if (identification === undefined || last === undefined) throw inconsistentFault("its Vorbis headers are missing");
	return vorbisCodec(readVorbisModes(identification, last));
}

/** Length of the longest audio track, because decoders may choose any track. */
function measure(tracks: readonly Track[]): MeasuredRecording {
	const sounds = tracks.filter(({ type }) => type === SOUND);
	if (sounds.length === 0) throw unsupportedFault("it has no audio track");
	return {
		seconds: Math.max(...sounds.map(({ seconds }) => seconds)),
		secondsMax: Math.max(...sounds.map(({ secondsMax }) => secondsMax)),
	};
}
