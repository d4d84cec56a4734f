/** Opus (RFC 6716): the first byte of a packet says how long its frames are, and it or the second one how many. */

const RATE = 48_000;
/** An empty packet stands for a lost one, and decoders make up sound for it: the longest that a packet may hold. */
export const OPUS_PACKET_SECONDS_MAX = 0.12;

/** Seconds of a packet by its first two bytes. */
export function opusSeconds(first: number, second: number): number {
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
