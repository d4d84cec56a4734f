import { isoOrNull } from "../base/iso-date.ts";
import type { Maker, ManagementKeyRecord } from "../keys/management-key-admin.ts";
import {
	COMMAND_LINE,
	createManagementKey,
	listManagementKeys,
	revokeManagementKey,
} from "../keys/management-key-admin.ts";
import { MANAGEMENT_SCOPES } from "../keys/management-scope.ts";
import type { Command } from "./command.ts";
import { UsageError } from "./command.ts";
import { keyMaker } from "./key-commands.ts";
import { dateMsOf, namesOf, PAGE_OPTIONS, pageOf } from "./option-values.ts";
import { listOutput } from "./table.ts";

const BY_COMMAND: Maker = { id: COMMAND_LINE, ip: null };

const create: Command = {
	name: "management-key create",
	summary: "make a key of the management interface; its secret is shown this once",
	arguments: [],
	makesDatabase: true,
	options: {
		name: { type: "string", value: "N", required: true, help: "what it is for, as terraform" },
		scopes: { type: "string", value: "A,B", required: true, help: `of ${MANAGEMENT_SCOPES.join(", ")}, or all` },
		expires: { type: "string", value: "ISO", help: "when it ends: 2027-01-31 or 2027-01-31T12:00:00Z; default never" },
	},
	details: "It opens /v1/management/ and nothing else; it belongs to no operator and to no account.",
	async run(context, input) {
		const scopes = input.required("scopes");
		const expires = input.option("expires");
		const expiresAtMs = expires === undefined ? null : dateMsOf("expires", expires);
		if (expiresAtMs !== null && expiresAtMs <= Date.now()) throw new UsageError("--expires lies in the past");
		const wanted = {
			name: input.required("name"),
			scopes: scopes === "all" ? MANAGEMENT_SCOPES : namesOf("scopes", scopes),
			expiresAtMs,
		};
		const { id, secret } = await context.withDatabase(({ statements }) =>
			createManagementKey(keyMaker(context, statements), wanted, BY_COMMAND),
		);
		return {
			json: { id, secret },
			text: `made management key ${id}\n\n  ${secret}\n\nThis is the only time that the secret is shown.`,
			ifLost: `revoke ${id}, whose secret is lost by it`,
		};
	},
};

const list: Command = {
	name: "management-key list",
	summary: "keys of the management interface",
	arguments: [],
	options: PAGE_OPTIONS,
	async run({ withDatabase }, input) {
		const page = await withDatabase(({ statements }) => listManagementKeys(statements, pageOf(input)));
		const head = ["ID", "NAME", "SECRET", "STATE", "SCOPES", "MADE BY", "EXPIRES", "LAST USED"];
		return listOutput(page, head, managementKeyJson, (row) => [
			row.id,
			row.name,
			`${row.prefix}…${row.lastFour}`,
			row.state,
			row.scopes.join(","),
			row.madeByEmail ?? row.madeBy,
			isoOrNull(row.expiresAtMs) ?? "never",
			isoOrNull(row.lastUsedAtMs) ?? "never",
		]);
	},
};

const revoke: Command = {
	name: "management-key revoke",
	summary: "end a key of the management interface, at once and everywhere",
	arguments: ["ID"],
	options: {},
	async run({ withDatabase }, input) {
		const id = input.argument(0);
		await withDatabase(({ statements }) => revokeManagementKey(statements, id, BY_COMMAND));
		return { json: { id, state: "revoked" }, text: `${id} is revoked` };
	},
};

export const managementKeyCommands: readonly Command[] = [create, list, revoke];

function managementKeyJson(key: ManagementKeyRecord): Record<string, unknown> {
	return {
		id: key.id,
		name: key.name,
		prefix: key.prefix,
		last_four: key.lastFour,
		state: key.state,
		scopes: key.scopes,
		made_by: key.madeBy,
		expires_at: isoOrNull(key.expiresAtMs),
		created_at: isoOrNull(key.createdAtMs),
		last_used_at: isoOrNull(key.lastUsedAtMs),
		revoked_at: isoOrNull(key.revokedAtMs),
	};
}
