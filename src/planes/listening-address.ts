import { ConfigError } from "../config.ts";

/** An address to listen on, as people write it: `http://host:port`. */
export function addressOf(host: string, port: number | undefined): string {
	return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** What the system says of a host that it cannot make an address of; of a name that it does not know the runtime gives no code. */
const NO_ADDRESS: readonly unknown[] = [undefined, "EINVAL", "ENOTFOUND", "EAI_AGAIN"];

/** As `listen`. What the system says of an address that is none does not name the setting, and reads as if another one were meant. */
export function listenAt<Listener>(host: string, listen: () => Listener): Listener {
	try {
		return listen();
	} catch (error) {
		if (!NO_ADDRESS.includes((error as NodeJS.ErrnoException).code)) throw error;
		throw new ConfigError([`HOST must be an address of this machine, or a name of one, without a port; got "${host}"`]);
	}
}
