import { inconsistentFault, type RecordingWalk } from "./walk.ts";

const HEADER_BYTES_MAX = 16;
const RATES = [0, 88_200, 176_400, 192_000, 8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000];

/** CRC-8 with the polynomial x^8 + x^2 + x + 1. It tells headers from audio data that looks like a header. */
const CRC8 = Uint8Array.from({ length: 256 }, (_, byte) => {
	let crc = byte;
	for (let bit = 0; bit < 8; bit += 1) crc = (crc << 1) ^ (crc & 0x80 ? 0x107 : 0);
	return crc;
});

/**
 * FLAC (RFC 9639): sums the frames whose headers have a correct checksum. Frames with consecutive numbers are the
 * recording; other frames count only towards `secondsMax`, the most that a decoder might find. The header's
 * `totalSamples` is the claimed length.
 */
export function* walkFlac(start: number, size: number): RecordingWalk {
	let at = start + 4;
	let window = yield at;
	let windowAt = at;
	let streamRate = 0;
	let totalSamples = 0;
	for (let last = false; !last; ) {
		if (at + 64 > windowAt + window.length) {
			windowAt = at;
			window = yield at;
		}
		const here = at - windowAt;
		if (here + 4 > window.length) throw inconsistentFault("its headers are cut off");
		last = ((window[here] as number) & 0x80) !== 0;
		const isInfo = ((window[here] as number) & 0x7f) === 0;
		if (isInfo && here + 38 <= window.length) {
			streamRate = window.readUIntBE(here + 14, 3) >> 4;
			totalSamples = ((window[here + 17] as number) & 15) * 2 ** 32 + window.readUInt32BE(here + 18);
		}
		at += 4 + window.readUIntBE(here + 1, 3);
	}
	if (streamRate === 0) throw inconsistentFault("its sample rate is missing");
	let seconds = 0;
	let others = 0;
	let expected: number | undefined;
	while (at + HEADER_BYTES_MAX / 2 <= size) {
		windowAt = at;
		window = yield at;
		const isEnd = windowAt + window.length >= size;
		const end = isEnd ? window.length : window.length - HEADER_BYTES_MAX;
		for (let here = window.indexOf(0xff); here !== -1 && here < end; here = window.indexOf(0xff, here + 1)) {
			const header = headerAt(window, here);
			if (header === undefined) continue;
			const isNext = (expected ?? header.number) === header.number && (header.rate === 0 || header.rate === streamRate);
			if (isNext) seconds += header.samples / streamRate;
			else others += header.samples / (header.rate || streamRate);
			if (isNext) expected = header.number + (header.variable ? header.samples : 1);
		}
		at += isEnd ? window.length : end;
	}
	const claimed = totalSamples === 0 ? undefined : totalSamples / streamRate;
	return { seconds, secondsMax: seconds + others, claimed };
}

function headerAt(bytes: Buffer, at: number) {
	if (at + 6 > bytes.length || ((bytes[at + 1] as number) & 0xfe) !== 0xf8) return undefined;
	const third = bytes[at + 2] as number;
	const fourth = bytes[at + 3] as number;
	const blockCode = third >> 4;
	const rateCode = third & 15;
	const reserved = (fourth & 1) !== 0 || fourth >> 4 > 10 || ((fourth >> 1) & 7) === 3;
	if (blockCode === 0 || rateCode === 15 || reserved) return undefined;
	const lead = bytes[at + 4] as number;
	const more = lead < 0x80 ? 0 : Math.clz32(~(lead << 24)) - 1;
	if (more < 0 || (lead >= 0x80 && more === 0) || more > 6) return undefined;
	let place = at + 5;
	const blockBytes = blockCode === 6 ? 1 : blockCode === 7 ? 2 : 0;
	const rateBytes = rateCode === 12 ? 1 : rateCode === 13 || rateCode === 14 ? 2 : 0;
	if (place + more + blockBytes + rateBytes >= bytes.length) return undefined;
	let number = more === 0 ? lead : lead & (0x3f >> more);
	for (let step = 0; step < more; step += 1) number = number * 64 + ((bytes[place++] as number) & 0x3f);
	const block = blockBytes === 0 ? 0 : bytes.readUIntBE(place, blockBytes);
	place += blockBytes;
	const rate = rateBytes === 0 ? 0 : bytes.readUIntBE(place, rateBytes);
	place += rateBytes;
	let crc = 0;
	for (let byte = at; byte < place; byte += 1) crc = CRC8[crc ^ (bytes[byte] as number)] as number;
	if (crc !== bytes[place]) return undefined;
	return {
		samples: blockBytes > 0 ? block + 1 : samplesOf(blockCode),
		/** Sample rate of the frame; 0: the rate of the stream. */
		rate: rateCode < 12 ? (RATES[rateCode] as number) : rate * (rateCode === 12 ? 1_000 : rateCode === 14 ? 10 : 1),
		/** Number of the frame, or of the frame's first sample. */
		number,
		variable: ((bytes[at + 1] as number) & 1) === 1,
	};
}

function samplesOf(code: number): number {
	if (code === 1) return 192;
	return code < 6 ? 576 << (code - 2) : 256 << (code - 8);
}
