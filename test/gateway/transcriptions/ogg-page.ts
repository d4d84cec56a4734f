/** Copies an Ogg page with changes and a valid checksum (RFC 3533). */
export function oggPage(
	page: Buffer,
	change: { serial?: number; position?: bigint; lacing?: readonly number[]; body?: Buffer },
): Buffer {
	const segments = page[26] ?? 0;
	const lacing = change.lacing ?? [...page.subarray(27, 27 + segments)];
	const body = change.body ?? page.subarray(27 + segments);
	const bytes = Buffer.concat([page.subarray(0, 27), Buffer.from(lacing), body]);
	bytes.write("OggS");
	bytes.writeUInt8(lacing.length, 26);
	if (change.position !== undefined) bytes.writeBigUInt64LE(change.position, 6);
	if (change.serial !== undefined) bytes.writeUInt32LE(change.serial, 14);
	bytes.writeUInt32LE(0, 22);
	let crc = 0;
	for (const byte of bytes) {
		crc ^= byte << 24;
		for (let bit = 0; bit < 8; bit += 1) crc = (crc << 1) ^ (crc < 0 ? 0x04c11db7 : 0);
	}
	bytes.writeUInt32LE(crc >>> 0, 22);
	return bytes;
}
