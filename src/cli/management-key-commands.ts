import { isoOrNull } from "../base/iso-date.ts";
import type { Maker, ManagementKeyRecord } from "../keys/management-key-admin.ts";
import {
	COMMAND_LINE,
	createManagementKey,
	listManagementKeys,
	revokeManagementKey,
} from "../keys/management-key-admin.ts";
import { MANAGEMENT_SCOPES } from "../keys/management-scope.ts";
import { type CommandRuns, UsageError } from "./command.ts";
import { keyMaker, madeKey } from "./key-commands.ts";
import { dateMsOf, namesOf, pageOf } from "./option-values.ts";
import { secretText } from "./setting-options.ts";
import { listOutput } from "./table.ts";

const BY_COMMAND: Maker = { id: COMMAND_LINE, ip: null };

export const managementKeyCommands: CommandRuns = {
	async "management-key create"(context, input) {
		const scopes = input.required("scopes");
		const expires = input.option("expires");
		const expiresAtMs = expires === undefined ? null : dateMsOf("expires", expires);
		if (expiresAtMs !== null && expiresAtMs <= Date.now()) throw new UsageError("--expires lies in the past");
		const wanted = {
			name: input.required("name"),
			scopes: scopes === "all" ? MANAGEMENT_SCOPES : namesOf("scopes", scopes),
			expiresAtMs,
		};
		const made = await context.withDatabase(({ statements }) =>
			createManagementKey(keyMaker(context, statements), wanted, BY_COMMAND),
		);
		return madeKey(made, "management key");
	},
	async "management-key list"({ withDatabase }, input) {
		const page = await withDatabase(({ statements }) => listManagementKeys(statements, pageOf(input)));
		const columns = ["ID", "NAME", "SECRET", "STATE", "SCOPES", "MADE BY", "EXPIRES", "LAST USED"];
		return listOutput(page, managementKeyJson, columns, {
			SECRET: secretText,
			"MADE BY": (row) => row.madeByEmail ?? row.madeBy,
		});
	},
	async "management-key revoke"({ withDatabase }, input) {
		const id = input.argument(0);
		await withDatabase(({ statements }) => revokeManagementKey(statements, id, BY_COMMAND));
		return { json: { id, state: "revoked" }, text: `${id} is revoked` };
	},
};

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
