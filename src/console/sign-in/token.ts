export const newToken = (): string => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");

export const hashToken = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("hex");
