import type postgres from "postgres";
import { Fault } from "../base/fault.ts";
import { withSetting } from "./search-path.ts";

interface RequiredSetting {
	readonly name: string;
	/** As it is asked for. */
	readonly value: string;
	/** Whether what the server shows is as good. */
	isMet(shown: string): boolean;
}

function required(name: string, value: string, isMet = (shown: string) => shown === value): RequiredSetting {
	return { name, value, isMet };
}

/**
 * Settings that every connection needs; a role, a database or its address may set them otherwise. The driver reads times and bytes
 * by the first two: in another style a day is taken for a month, and what is encrypted cannot be read. Functions that wait for
 * a row go on with what it is by then, which the stricter isolations refuse. Lists of settlements have nulls in them. A
 * connection that waits for its next request is no idle one to be ended, for that would be sent in the same moment; what
 * reads all of the books is one transaction, which our own deadlines end.
 */
const REQUIRED: readonly RequiredSetting[] = [
	required("DateStyle", "ISO", (shown) => shown.startsWith("ISO")),
	required("bytea_output", "hex"),
	required("default_transaction_isolation", "read committed"),
	required("array_nulls", "on"),
	// Below it a number with a point loses digits before that point, too: of a place in a file, of milliseconds.
	required("extra_float_digits", "1", (shown) => Number(shown) >= 0),
	required("client_encoding", "UTF8"),
	required("standard_conforming_strings", "on"),
	required("idle_session_timeout", "0"),
	required("transaction_timeout", "0"),
];

/** The address with those asked for that `client`, of this address, has otherwise: no pooler has to pass on what is well. */
export async function withRequiredSettings(client: postgres.Sql, url: string): Promise<string> {
	const shown = await show(client);
	const asked = REQUIRED.filter(({ isMet, value }, at) => !isMet(shown[at] ?? value));
	return asked.reduce((to, { name, value }) => withSetting(to, name, value), url);
}

/** A Fault unless connections by an address that `withRequiredSettings` made have all of them. */
export async function checkRequiredSettings(client: postgres.Sql): Promise<void> {
	const shown = await show(client);
	const at = REQUIRED.findIndex(({ isMet, value }, index) => !isMet(shown[index] ?? value));
	const lost = REQUIRED[at];
	if (lost === undefined) return;
	throw new Fault(
		"service_unavailable",
		`Connections to the database have ${lost.name} = ${shown[at]}, and a pooler overlooks that we ask for ${lost.value}: set it so for this role and database (\`alter role … set\`).`,
	);
}

/** Null for what this server's version does not have. */
async function show(client: postgres.Sql): Promise<readonly (string | null)[]> {
	const [row] = await client.unsafe<{ shown: string }[]>(
		`select json_build_array(${REQUIRED.map(({ name }) => `current_setting('${name}', true)`).join(", ")})::text as shown`,
	);
	return JSON.parse(row?.shown ?? "[]");
}
