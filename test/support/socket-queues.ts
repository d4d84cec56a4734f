import { readFileSync } from "node:fs";

/**
 * Whether bytes lie at a socket of this port, sent and not read by the other end. The kernel's own table (proc(5),
 * `/proc/net/tcp`) says so; where there is none, nothing is known to lie there.
 */
export function hasUnread(port: number): boolean {
	return ["/proc/net/tcp", "/proc/net/tcp6"].some((table) => {
		for (const line of linesOf(table)) {
			const [, local = "", remote = "", , queues = ""] = line.trim().split(/\s+/);
			const isOurs = [local, remote].some((address) => Number.parseInt(address.split(":")[1] ?? "", 16) === port);
			if (isOurs && /[^0:]/.test(queues)) return true;
		}
		return false;
	});
}

function linesOf(table: string): string[] {
	try {
		return readFileSync(table, "latin1").split("\n").slice(1);
	} catch {
		return [];
	}
}
