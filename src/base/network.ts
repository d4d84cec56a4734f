import { isIP } from "node:net";

/** Whether it is an address, or a network as `10.0.0.0/8`. */
export function isNetwork(text: string): boolean {
	const [address = "", prefix, ...rest] = text.split("/");
	const version = isIP(address);
	if (version === 0 || rest.length > 0) return false;
	return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (version === 4 ? 32 : 128));
}
