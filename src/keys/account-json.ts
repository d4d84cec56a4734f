import { isoOrNull } from "../base/iso-date.ts";
import type { AccountRecord } from "./account-admin.ts";

/** An account as scripts read it, from the command and from `/v1/management/` alike. */
export const accountJson = (account: AccountRecord) => ({
	id: account.id,
	email: account.email,
	name: account.name,
	state: account.state,
	topped_up: account.toppedUp,
	time_zone: account.timeZone,
	signed_in_at: isoOrNull(account.signedInAtMs),
	created_at: isoOrNull(account.createdAtMs),
});
