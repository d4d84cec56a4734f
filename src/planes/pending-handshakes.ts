import { readFile } from "node:fs/promises";

/** The kernel's lists of connections, by family. */
const LISTS = ["/proc/net/tcp", "/proc/net/tcp6"];

/**
 * Whose connections to `port` are half-way in: the kernel has answered their opening, and waits for their word that they have
 * heard. What the list names by the two ends is one connection. Empty where there is no such list, or no descriptor to read it.
 */
export async function pendingHandshakes(port: number): Promise<Set<string>> {
	const ending = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
	const lists = await Promise.all(LISTS.map((path) => readFile(path, "latin1").catch(() => "")));
	// State 03 is that one. Few are in it, of thousands.
	const found = lists.flatMap((list) => [...list.matchAll(/^ *\d+: (\w+:\w{4}) (\w+:\w{4}) 03 /gm)]);
	return new Set(found.filter(([, own]) => own?.endsWith(ending)).map(([, own, other]) => `${own} ${other}`));
}
