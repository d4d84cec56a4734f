import type postgres from "postgres";
import { Fault } from "../base/fault.ts";

interface Granted {
	readonly name: string;
	/** As it is asked for. */
	readonly value: string;
	/** Whether what the server shows is as good. */
	isMet(shown: string): boolean;
}

function granted(name: string, value: string, isMet = (shown: string) => shown === value): Granted {
	return { name, value, isMet };
}

/**
 * What is taken for granted of a connection, and a role or a database may be set otherwise. The driver reads times and bytes
 * by the first two: in another style a day is taken for a month, and what is encrypted cannot be read. Functions that wait for
 * a row go on with what it is by then, which the stricter isolations refuse. Lists of settlements have nulls in them.
 */
const GRANTED: readonly Granted[] = [
	granted("DateStyle", "ISO", (shown) => shown.startsWith("ISO")),
	granted("bytea_output", "hex"),
	granted("default_transaction_isolation", "read committed"),
	granted("array_nulls", "on"),
	granted("standard_conforming_strings", "on"),
];

/** The address with those asked for that `client`, of this address, has otherwise: no pooler has to pass on what is well. */
export async function withGranted(client: postgres.Sql, url: string): Promise<string> {
	const shown = await show(client);
	const asked = GRANTED.filter(({ isMet }, at) => !isMet(shown[at] ?? ""));
	return asked.reduce((to, { name, value }) => `${to}&${name}=${encodeURIComponent(value)}`, url);
}

/** A Fault unless connections by an address that `withGranted` made have all of them. */
export async function checkGranted(client: postgres.Sql): Promise<void> {
	const shown = await show(client);
	const at = GRANTED.findIndex(({ isMet }, index) => !isMet(shown[index] ?? ""));
	const lost = GRANTED[at];
	if (lost === undefined) return;
	throw new Fault(
		"service_unavailable",
		`Connections to the database have ${lost.name} = ${shown[at]}, and a pooler overlooks that we ask for ${lost.value}: set it so for this role and database (\`alter role … set\`).`,
	);
}

async function show(client: postgres.Sql): Promise<readonly string[]> {
	const [row] = await client.unsafe<{ shown: string }[]>(
		`select json_build_array(${GRANTED.map(({ name }) => `current_setting('${name}')`).join(", ")})::text as shown`,
	);
	return JSON.parse(row?.shown ?? "[]");
}
