import type postgres from "postgres";
import { Fault } from "../base/fault.ts";
import { withSetting } from "./search-path.ts";

interface RequiredSetting {
	readonly name: string;
	/** The value that connections request. */
	readonly value: string;
	/** Whether the value that the server shows is equivalent. */
	isMet(shown: string): boolean;
}

function required(name: string, value: string, isMet = (shown: string) => shown === value): RequiredSetting {
	return { name, value, isMet };
}

/**
 * Settings that every connection needs; a role, a database or its address may set others.
 * - The driver reads times and bytes by the first two: in another style it takes a day for a month, and cannot read
 *   encrypted bytes.
 * - Functions that wait for a row go on with its new version, which stricter isolations refuse.
 * - Lists of settlements contain nulls.
 * - An idle connection must not be ended: the end could meet the next statement.
 * - The check of all books is one transaction, which our own deadlines end.
 */
const REQUIRED: readonly RequiredSetting[] = [
	required("DateStyle", "ISO", (shown) => shown.startsWith("ISO")),
	required("bytea_output", "hex"),
	required("default_transaction_isolation", "read committed"),
	required("array_nulls", "on"),
	// Below it numbers lose digits before the point, too: of file positions, of milliseconds.
	required("extra_float_digits", "1", (shown) => Number(shown) >= 0),
	required("client_encoding", "UTF8"),
	required("standard_conforming_strings", "on"),
	required("idle_session_timeout", "0"),
	required("transaction_timeout", "0"),
];

/** The address with the settings in which `client`, of this address, differs: a pooler need not pass on the others. */
export async function withRequiredSettings(client: postgres.Sql, url: string): Promise<string> {
	const shown = await show(client);
	const asked = REQUIRED.filter(({ isMet, value }, at) => !isMet(shown[at] ?? value));
	return asked.reduce((to, { name, value }) => withSetting(to, name, value), url);
}

/** Checks that connections with an address from `withRequiredSettings` have all of the settings. */
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

/** Null for a setting that this server's version does not have. */
async function show(client: postgres.Sql): Promise<readonly (string | null)[]> {
	const [row] = await client.unsafe<{ shown: string }[]>(
		`select json_build_array(${REQUIRED.map(({ name }) => `current_setting('${name}', true)`).join(", ")})::text as shown`,
	);
	return JSON.parse(row?.shown ?? "[]");
}
