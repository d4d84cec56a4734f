import { readVorbisModes, type VorbisModes, vorbisSamples } from "./vorbis.ts";
import { inconsistentFault, type RecordingWalk, unsupportedFault } from "./walk.ts";

/** CRC-32 with the polynomial 0x04c11db7, highest bit first (RFC 3533). */
const CRC32 = Uint32Array.from({ length: 256 }, (_, byte) => {
	let crc = byte << 24;
	for (let bit = 0; bit < 8; bit += 1) crc = (crc << 1) ^ (crc < 0 ? 0x04c11db7 : 0);
	return crc;
});

const PAGE_BYTES_MAX = 27 + 255 + 255 * 255;
const STREAMS_MAX = 64;
/** Longest header packet; the largest is Vorbis' setup header. */
const HEADER_BYTES_MAX = 128 * 1024;
/** Flags of a page: its first packet continues the previous page's last packet; it is the first page of its stream. */
const CONTINUES = 1;
const BEGINS = 2;
/** Position field of a page on which no packet ends. */
const NO_POSITION = 2n ** 64n - 1n;

/** How to measure a codec's packets. */
export interface OggCodec {
	/** Samples per second in page positions, and the number of samples at the start that are not played. */
	readonly rate: number;
	readonly skipped: number;
	/** Seconds of an audio packet, by its length and its first two bytes. */
	seconds(length: number, first: number, second: number): { likely: number; max: number };
}

class Stream {
	/** Header packets, collected until the codec is known. */
	readonly headers: Buffer[] = [];
	codec: OggCodec | undefined = undefined;
	length = 0;
	first = 0;
	second = 0;
	pieces: Buffer[] = [];
	seconds = 0;
	secondsMax = 0;
	position = 0n;
}

/** Ogg (RFC 3533) with Opus or Vorbis: sums the packets of its pages. The last page's position is a claim. */
export function* walkOgg(start: number, size: number): RecordingWalk {
	const streams = new Map<number, Stream>();
	let windowAt = start;
	let window = yield start;
	for (let at = start; at < size; ) {
		if (at + PAGE_BYTES_MAX > windowAt + window.length && windowAt + window.length < size) {
			windowAt = at;
			window = yield at;
		}
		const page = pageAt(window, at - windowAt);
		if (page === undefined) {
			if (isPadding(window.subarray(at - windowAt)) && windowAt + window.length >= size) break;
			throw inconsistentFault("a page is damaged");
		}
		at += page.bytes.length;
		takePage(streams, page.bytes, page.body);
	}
	const heard = [...streams.values()].filter(({ codec }) => codec !== undefined);
	if (heard.length === 0) throw unsupportedFault("it has no Opus or Vorbis stream");
	const sum = (of: (stream: Stream) => number) => heard.reduce((total, stream) => total + of(stream), 0);
	// Broadcasts recorded from the middle start at a large position, so only a claim that is too small contradicts.
	const claimed = sum(({ codec, position }) =>
		codec === undefined ? 0 : Math.max(0, Number(position) - codec.skipped) / codec.rate,
	);
	return { seconds: sum((one) => one.seconds), secondsMax: sum((one) => one.secondsMax), claimed };
}

function pageAt(window: Buffer, at: number): { bytes: Buffer; body: number } | undefined {
	if (at + 27 > window.length || window.toString("latin1", at, at + 4) !== "OggS" || window[at + 4] !== 0)
		return undefined;
	const segments = window[at + 26] as number;
	let length = 27 + segments;
	if (at + length > window.length) return undefined;
	for (let place = at + 27; place < at + 27 + segments; place += 1) length += window[place] as number;
	if (at + length > window.length) return undefined;
	let crc = 0;
	for (let place = 0; place < length; place += 1) {
		const byte = place >= 22 && place < 26 ? 0 : (window[at + place] as number);
		crc = (crc << 8) ^ (CRC32[((crc >>> 24) ^ byte) & 255] as number);
	}
	if (crc >>> 0 !== window.readUInt32LE(at + 22)) return undefined;
	return { bytes: window.subarray(at, at + length), body: 27 + segments };
}

function takePage(streams: Map<number, Stream>, page: Buffer, body: number): void {
	const serial = page.readUInt32LE(14);
	const flags = page[5] as number;
	let stream = streams.get(serial);
	if (stream !== undefined && (flags & BEGINS) !== 0) throw inconsistentFault("a stream begins twice");
	if (((flags & CONTINUES) !== 0) !== (stream?.length ?? 0) > 0) throw inconsistentFault("a page is missing");
	if (stream === undefined) {
		if (streams.size === STREAMS_MAX) throw inconsistentFault("it has too many streams");
		stream = new Stream();
		streams.set(serial, stream);
	}
	let at = body;
	for (let segment = 27; segment < body; segment += 1) {
		const length = page[segment] as number;
		// A packet's first bytes are in its first segment. A packet continued from the previous page has at least 255.
		if (stream.length === 0) {
			stream.first = length > 0 ? (page[at] as number) : 0;
			stream.second = length > 1 ? (page[at + 1] as number) : 0;
		}
		if (stream.codec === undefined && length > 0) stream.pieces.push(page.subarray(at, at + length));
		stream.length += length;
		at += length;
		if (stream.codec === undefined && stream.length > HEADER_BYTES_MAX) throw inconsistentFault("a header is too long");
		if (length < 255) endPacket(stream);
	}
	const position = page.readBigUInt64LE(6);
	if (position !== NO_POSITION) stream.position = position;
}

function endPacket(stream: Stream): void {
	if (stream.codec === undefined) {
		stream.headers.push(Buffer.concat(stream.pieces));
		stream.codec = codecOf(stream.headers);
	} else {
		const { likely, max } = stream.codec.seconds(stream.length, stream.first, stream.second);
		stream.seconds += likely;
		stream.secondsMax += max;
	}
	stream.length = 0;
	stream.pieces = [];
}

/** Codec of a stream; undefined while headers are missing. Throws for others: servers might play them uncharged. */
function codecOf(headers: readonly Buffer[]): OggCodec | undefined {
	const [first, , third] = headers;
	if (first?.toString("latin1", 0, 8) === "OpusHead") return headers.length < 2 ? undefined : opusCodec(first);
	if (first?.toString("latin1", 0, 7) !== "\x01vorbis")
		throw unsupportedFault("it has a stream that is neither Opus nor Vorbis");
	return third === undefined ? undefined : vorbisCodec(readVorbisModes(first, third));
}

export function opusCodec(head: Buffer): OggCodec {
	return {
		rate: 48_000,
		skipped: head.length < 12 ? 0 : head.readUInt16LE(10),
		seconds(length, first, second) {
			if (length === 0) return { likely: 0, max: OPUS_PACKET_SECONDS_MAX };
			const seconds = opusSeconds(first, second);
			return { likely: seconds, max: seconds };
		},
	};
}

export function vorbisCodec(modes: VorbisModes): OggCodec {
	let before = 0;
	return {
		rate: modes.rate,
		skipped: 0,
		seconds(length, first) {
			// An empty packet or another header packet plays nothing.
			if (length === 0 || first % 2 === 1) return { likely: 0, max: 0 };
			const { samples, block } = vorbisSamples(modes, first, before);
			before = block;
			return { likely: samples / modes.rate, max: samples / modes.rate };
		},
	};
}

/** True if the bytes after the last page are harmless: zeros, or an ID3v1 tag. */
function isPadding(rest: Buffer): boolean {
	return rest.every((byte) => byte === 0) || (rest.length === 128 && rest.toString("latin1", 0, 3) === "TAG");
}

const RATE = 48_000;
/** Longest Opus packet; also the most for an empty packet, which marks a lost packet that decoders fill with sound. */
const OPUS_PACKET_SECONDS_MAX = 0.12;

/** Seconds of an Opus packet, by its first two bytes. */
function opusSeconds(first: number, second: number): number {
	const config = first >> 3;
	const code = first & 3;
	const frames = code === 0 ? 1 : code === 3 ? second & 63 : 2;
	return (frames * frameSamples(config)) / RATE;
}

function frameSamples(config: number): number {
	if (config < 12) return [480, 960, 1_920, 2_880][config & 3] as number;
	if (config < 16) return config % 2 === 0 ? 480 : 960;
	return 120 << (config & 3);
}
