/**
 * How long a recording is, from its file's own headers, without decoding it. A header may lie: the bound is therefore
 * never below what the file's size allows at the highest usual bitrate, and where a format cannot be read it is what the
 * size allows at the lowest. What a request costs beyond its bound is taken from free credit like any other excess.
 */
export interface AudioDuration {
	/** Whole seconds that the recording hardly passes. */
	readonly secondsMax: number;
	/** Whole seconds that it likely has, rounded up. */
	readonly secondsLikely: number;
}

/** The lowest rate that speech is sold at in practice, in bytes a second: 8 kbit/s. */
const BYTES_PER_SECOND_MIN = 1_000;
/** What cannot be read is likely ordinary compressed speech: 32 kbit/s. */
const BYTES_PER_SECOND_TYPICAL = 4_000;
/** Highest rates, in bytes a second, of the formats whose headers say their length but not their rate. */
const OGG_BYTES_PER_SECOND_MAX = 64_000;
const MP4_BYTES_PER_SECOND_MAX = 192_000;
/** No recording is taken for longer. */
const SECONDS_CAP = 24 * 60 * 60;
const HEAD_BYTES = 64 * 1024;
const TAIL_BYTES = 128 * 1024;
const WINDOW_BYTES = 1024 * 1024;
const BOXES_MAX = 64;
const CHUNKS_MAX = 64;

export async function audioDuration(file: Blob): Promise<AudioDuration> {
	const read = await readDuration(file);
	if (read === undefined) {
		return {
			secondsMax: wholeSeconds(file.size / BYTES_PER_SECOND_MIN),
			secondsLikely: wholeSeconds(file.size / BYTES_PER_SECOND_TYPICAL),
		};
	}
	const secondsLikely = wholeSeconds(read.seconds);
	const secondsMax = Math.max(secondsLikely, wholeSeconds(read.secondsMin));
	return { secondsMax, secondsLikely };
}

function wholeSeconds(seconds: number): number {
	return Math.min(SECONDS_CAP, Math.max(1, Math.ceil(seconds)));
}

interface Reading {
	readonly seconds: number;
	/** The least that the file's size allows at the highest usual rate. */
	readonly secondsMin: number;
}

async function readDuration(file: Blob): Promise<Reading | undefined> {
	const head = await bytesOf(file, 0, HEAD_BYTES);
	const reading = await readFormat(file, head);
	return reading !== undefined && Number.isFinite(reading.seconds) && reading.seconds > 0 ? reading : undefined;
}

function readFormat(file: Blob, head: Buffer): Promise<Reading | undefined> | Reading | undefined {
	if (head.length < 12) return undefined;
	const magic = head.toString("latin1", 0, 4);
	if (magic === "RIFF" && head.toString("latin1", 8, 12) === "WAVE") return wav(head, file.size);
	if (magic === "fLaC") return flac(head, file.size);
	if (magic === "OggS") return ogg(file, head);
	if (head.toString("latin1", 4, 8) === "ftyp") return mp4(file);
	if (magic.startsWith("ID3") || (head[0] === 0xff && ((head[1] as number) & 0xe0) === 0xe0)) return mp3(file, head);
	return undefined;
}

async function bytesOf(file: Blob, from: number, length: number): Promise<Buffer> {
	return Buffer.from(await file.slice(from, from + length).arrayBuffer());
}

/** Fixed-rate samples only: the size of the file then is its length. */
function wav(head: Buffer, size: number): Reading | undefined {
	let at = 12;
	let bytesPerSecond = 0;
	for (let chunk = 0; chunk < CHUNKS_MAX && at + 8 <= head.length; chunk += 1) {
		const name = head.toString("latin1", at, at + 4);
		const length = head.readUInt32LE(at + 4);
		if (name === "fmt " && length >= 16 && at + 24 <= head.length) {
			const format = head.readUInt16LE(at + 8);
			if (![1, 3, 6, 7, 0xfffe].includes(format)) return undefined;
			bytesPerSecond =
				head.readUInt16LE(at + 10) * head.readUInt32LE(at + 12) * Math.ceil(head.readUInt16LE(at + 22) / 8);
		}
		if (name === "data") {
			if (bytesPerSecond === 0) return undefined;
			const rest = Math.max(0, size - at - 8);
			return { seconds: Math.min(length, rest) / bytesPerSecond, secondsMin: rest / bytesPerSecond };
		}
		at += 8 + length + (length % 2);
	}
	return undefined;
}

function flac(head: Buffer, size: number): Reading | undefined {
	if (head.length < 26) return undefined;
	const sampleRate = head.readUIntBE(18, 3) >> 4;
	const channels = (((head[20] as number) >> 1) & 7) + 1;
	const bits = ((((head[20] as number) & 1) << 4) | ((head[21] as number) >> 4)) + 1;
	const samples = ((head[21] as number) & 15) * 2 ** 32 + head.readUInt32BE(22);
	return sampleRate === 0
		? undefined
		: { seconds: samples / sampleRate, secondsMin: (size * 8) / (sampleRate * channels * bits) };
}

/** The last page says how many samples there were. */
async function ogg(file: Blob, head: Buffer): Promise<Reading | undefined> {
	const opus = head.indexOf("OpusHead") !== -1;
	const vorbis = head.indexOf("\x01vorbis", 0, "latin1");
	if (!opus && (vorbis === -1 || vorbis + 16 > head.length)) return undefined;
	const sampleRate = opus ? 48_000 : head.readUInt32LE(vorbis + 12);
	const tail = await bytesOf(file, Math.max(0, file.size - TAIL_BYTES), TAIL_BYTES);
	const last = tail.lastIndexOf("OggS");
	if (last === -1 || last + 14 > tail.length || sampleRate === 0) return undefined;
	const samples = Number(tail.readBigUInt64LE(last + 6));
	return { seconds: samples / sampleRate, secondsMin: file.size / OGG_BYTES_PER_SECOND_MAX };
}

/** `moov/mvhd`, wherever in the file it stands. */
async function mp4(file: Blob): Promise<Reading | undefined> {
	let at = 0;
	for (let box = 0; box < BOXES_MAX && at + 8 <= file.size; box += 1) {
		const header = await bytesOf(file, at, 16);
		if (header.length < 8) return undefined;
		const name = header.toString("latin1", 4, 8);
		let length = header.readUInt32BE(0);
		if (length === 1 && header.length === 16) length = Number(header.readBigUInt64BE(8));
		if (name === "moov") return movieHeader(await bytesOf(file, at + 8, 256), file.size);
		if (length < 8) return undefined;
		at += length;
	}
	return undefined;
}

function movieHeader(bytes: Buffer, size: number): Reading | undefined {
	const at = bytes.indexOf("mvhd");
	if (at === -1 || at + 36 > bytes.length) return undefined;
	const long = bytes[at + 4] === 1;
	const timescale = bytes.readUInt32BE(at + (long ? 24 : 16));
	const duration = long ? Number(bytes.readBigUInt64BE(at + 28)) : bytes.readUInt32BE(at + 20);
	return timescale === 0 ? undefined : { seconds: duration / timescale, secondsMin: size / MP4_BYTES_PER_SECOND_MAX };
}

const MP3_KBITS_V1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const MP3_KBITS_V2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const MP3_SAMPLE_RATES = [44_100, 48_000, 32_000];

/** Adds up all frames (layer III): their headers are cheap to read, and a rate that changes is counted as it is. */
async function mp3(file: Blob, head: Buffer): Promise<Reading | undefined> {
	let at = head.toString("latin1", 0, 3) === "ID3" ? 10 + syncSafe(head, 6) : 0;
	let window = head;
	let windowAt = 0;
	let seconds = 0;
	let frames = 0;
	while (at + 4 <= file.size) {
		if (at < windowAt || at + 4 > windowAt + window.length) {
			window = await bytesOf(file, at, WINDOW_BYTES);
			windowAt = at;
			if (window.length < 4) break;
		}
		const frame = mp3Frame(window.readUInt32BE(at - windowAt));
		if (frame === undefined) {
			// Tags and rubbish between frames are skipped byte by byte; before the first frame that proves nothing.
			at += 1;
			if (frames === 0 && at > HEAD_BYTES) return undefined;
			continue;
		}
		frames += 1;
		seconds += frame.seconds;
		at += frame.bytes;
	}
	return frames < 2 ? undefined : { seconds, secondsMin: 0 };
}

function mp3Frame(header: number): { bytes: number; seconds: number } | undefined {
	const version = (header >>> 19) & 3;
	const layer = (header >>> 17) & 3;
	const rateIndex = (header >>> 10) & 3;
	const first = version === 3;
	if (header >>> 21 !== 0x7ff || version === 1 || layer !== 1 || rateIndex === 3) return undefined;
	const kbits = (first ? MP3_KBITS_V1 : MP3_KBITS_V2)[(header >>> 12) & 15];
	if (kbits === undefined || kbits === 0) return undefined;
	const sampleRate = (MP3_SAMPLE_RATES[rateIndex] as number) / (first ? 1 : version === 2 ? 2 : 4);
	const samples = first ? 1_152 : 576;
	const bytes = Math.floor((samples * kbits * 125) / sampleRate) + ((header >>> 9) & 1);
	return { bytes, seconds: samples / sampleRate };
}

/** Four times seven bits. */
function syncSafe(bytes: Buffer, at: number): number {
	let value = 0;
	for (let place = 0; place < 4; place += 1) value = value * 128 + ((bytes[at + place] as number) & 127);
	return value;
}
