/** The length of recordings by their headers; files are made here, byte by byte. */
import { expect, test } from "bun:test";
import { audioDuration } from "../../../src/gateway/transcriptions/audio-duration.ts";
import { wavOf } from "../../support/upstream-endpoints.ts";

const of = (...parts: (Uint8Array | string)[]) => audioDuration(new Blob(parts as BlobPart[]));
const bytes = (size: number) => Buffer.alloc(size);

function u32be(value: number): Buffer {
	const buffer = bytes(4);
	buffer.writeUInt32BE(value);
	return buffer;
}

test("WAV: the size of its samples, whatever its header claims of their length", async () => {
	expect(await of(wavOf(12))).toEqual({ secondsMax: 12, secondsLikely: 12 });
	const liar = Buffer.from(wavOf(12));
	liar.writeUInt32LE(32_000, 40);
	expect(await of(liar)).toEqual({ secondsMax: 12, secondsLikely: 1 });
	const longer = Buffer.from(wavOf(12));
	longer.writeUInt32LE(0xffffffff, 40);
	expect(await of(longer)).toEqual({ secondsMax: 12, secondsLikely: 12 });
	const compressed = Buffer.from(wavOf(12));
	compressed.writeUInt16LE(0x11, 20);
	expect(await of(compressed)).toEqual({ secondsMax: 385, secondsLikely: 97 });
});

test("MP3: all its frames, at whatever rates", async () => {
	// MPEG-1 layer III, 44.1 kHz, 128 kbit/s: 417 bytes for 1,152 samples.
	const frame = bytes(417);
	frame.writeUInt32BE(0xfffb9000);
	const frames = Array<Buffer>(1_000).fill(frame);
	const seconds = Math.ceil((1_000 * 1_152) / 44_100);
	expect(await of(...frames)).toEqual({ secondsMax: seconds, secondsLikely: seconds });
	const id3 = Buffer.concat([Buffer.from("ID3\x04\0\0\0\0\x02\x00", "latin1"), bytes(256)]);
	expect(await of(id3, ...frames)).toEqual({ secondsMax: seconds, secondsLikely: seconds });
	// MPEG-2 layer III, 22.05 kHz, 8 kbit/s: 26 bytes for 576 samples. Beyond the first window of the reader.
	const slow = bytes(26);
	slow.writeUInt32BE(0xfff31000);
	const long = Math.ceil((100_000 * 576) / 22_050);
	expect(await of(...Array<Buffer>(100_000).fill(slow))).toEqual({ secondsMax: long, secondsLikely: long });
});

test("FLAC: its samples, at least what its size allows", async () => {
	const info = bytes(38);
	info.writeUInt8(0, 0);
	const samples = 44_100 * 90;
	const packed = (BigInt(44_100) << 44n) | (1n << 41n) | (15n << 36n) | BigInt(samples);
	info.writeBigUInt64BE(packed, 14);
	expect(await of("fLaC", info)).toEqual({ secondsMax: 90, secondsLikely: 90 });
	const big = await of("fLaC", info, bytes(100 * 176_400));
	expect(big.secondsLikely).toBe(90);
	expect(big.secondsMax).toBe(101);
});

test("Ogg: the position of its last page", async () => {
	const page = (granule: number) => {
		const header = bytes(28);
		header.write("OggS", 0, "latin1");
		header.writeBigUInt64LE(BigInt(granule), 6);
		return header;
	};
	expect(await of(page(0), "OpusHead", bytes(500), page(48_000 * 33))).toEqual({ secondsMax: 33, secondsLikely: 33 });
	const vorbis = Buffer.concat([
		Buffer.from("\x01vorbis", "latin1"),
		bytes(5),
		Buffer.from([0x80, 0x3e, 0, 0]),
		bytes(9),
	]);
	expect(await of(page(0), vorbis, bytes(500), page(16_000 * 8))).toEqual({ secondsMax: 8, secondsLikely: 8 });
});

test("M4A: its movie header, before or behind the sound", async () => {
	const box = (name: string, body: Buffer) => Buffer.concat([u32be(body.length + 8), Buffer.from(name), body]);
	const mvhd = bytes(100);
	mvhd.writeUInt32BE(1_000, 12);
	mvhd.writeUInt32BE(61_500, 16);
	const file = [box("ftyp", Buffer.from("M4A \0\0\0\0")), box("mdat", bytes(100_000)), box("moov", box("mvhd", mvhd))];
	expect(await of(...file)).toEqual({ secondsMax: 62, secondsLikely: 62 });
});

test("anything else is bounded by its size at the lowest rate; nothing is longer than a day", async () => {
	expect(await of(bytes(60_000))).toEqual({ secondsMax: 60, secondsLikely: 15 });
	expect(await of("x")).toEqual({ secondsMax: 1, secondsLikely: 1 });
	expect(await of("RIFF\0\0\0\0WAVE")).toEqual({ secondsMax: 1, secondsLikely: 1 });
	const header = bytes(28);
	header.write("OggS", 0, "latin1");
	header.writeBigUInt64LE(2n ** 63n, 6);
	expect((await of(header, "OpusHead", bytes(64), header)).secondsMax).toBe(86_400);
});

test("rubbish of any kind neither throws nor hangs", async () => {
	let seed = 7;
	const random = () => {
		seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff;
		return seed / 0x7fffffff;
	};
	const magics = ["RIFF\0\0\0\0WAVEfmt ", "fLaC", "OggSOpusHead", "\0\0\0\x20ftypM4A ", "ID3", "\xff\xfb\x90\0", ""];
	for (let round = 0; round < 300; round += 1) {
		const rubbish = Buffer.from(Array.from({ length: Math.floor(random() * 400) }, () => Math.floor(random() * 256)));
		const magic = Buffer.from(magics[round % magics.length] as string, "latin1");
		const { secondsMax, secondsLikely } = await of(magic, rubbish);
		expect(Number.isInteger(secondsMax) && Number.isInteger(secondsLikely)).toBe(true);
		expect(secondsMax).toBeGreaterThanOrEqual(1);
	}
});
