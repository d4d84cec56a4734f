import type postgres from "postgres";
import { Fault } from "../base/fault.ts";
import { withSetting } from "./search-path.ts";

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
 * What is taken for granted of a connection, and a role, a database or its address may set otherwise. The driver reads times and bytes
 * by the first two: in another style a day is taken for a month, and what is encrypted cannot be read. Functions that wait for
 * a row go on with what it is by then, which the stricter isolations refuse. Lists of settlements have nulls in them. A
 * connection that waits for its next request is no idle one to be ended, for that would be sent in the same moment; what
 * reads all of the books is one transaction, which our own deadlines end.
 */
const GRANTED: readonly Granted[] = [
	granted("DateStyle", "ISO", (shown) => shown.startsWith("ISO")),
	granted("bytea_output", "hex"),
	granted("default_transaction_isolation", "read committed"),
	granted("array_nulls", "on"),
	// Below it a number with a point loses digits before that point, too: of a place in a file, of milliseconds.
	granted("extra_float_digits", "1", (shown) => Number(shown) >= 0),
	granted("client_encoding", "UTF8"),
	granted("standard_conforming_strings", "on"),
	granted("idle_session_timeout", "0"),
	granted("transaction_timeout", "0"),
];

/** The address with those asked for that `client`, of this address, has otherwise: no pooler has to pass on what is well. */
export async function withGranted(client: postgres.Sql, url: string): Promise<string> {
	const shown = await show(client);
	const asked = GRANTED.filter(({ isMet, value }, at) => !isMet(shown[at] ?? value));
	return asked.reduce((to, { name, value }) => withSetting(to, name, value), url);
}

/** A Fault unless connections by an address that `withGranted` made have all of them. */
export async function checkGranted(client: postgres.Sql): Promise<void> {
	const shown = await show(client);
	const at = GRANTED.findIndex(({ isMet, value }, index) => !isMet(shown[index] ?? value));
	const lost = GRANTED[at];
	if (lost === undefined) return;
	throw new Fault(
		"service_unavailable",
		`Connections to the database have ${lost.name} = ${shown[at]}, and a pooler overlooks that we ask for ${lost.value}: set it so for this role and database (\`alter role … set\`).`,
	);
}

/** Null for what this server's version does not have. */
async function show(client: postgres.Sql): Promise<readonly (string | null)[]> {
	const [row] = await client.unsafe<{ shown: string }[]>(
		`select json_build_array(${GRANTED.map(({ name }) => `current_setting('${name}', true)`).join(", ")})::text as shown`,
	);
	return JSON.parse(row?.shown ?? "[]");
}
