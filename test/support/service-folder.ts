import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./at-end.ts";
import { chatModel } from "./service.ts";

/** `KEY_PEPPER` of these services, with which tests create keys without starting a process. */
export const PEPPER = "p".repeat(40);

/** Environments of services as processes: a catalogue with one chat model, and a DATA_DIR for each name. */
export function serviceFolder(database: { readonly url: string }, upstreamUrl = "http://127.0.0.1:1/v1", extra = "") {
	const folder = temporaryFolder();
	const config = join(folder, "tollgate.yaml");
	writeFileSync(config, `models:\n${chatModel({ url: upstreamUrl, dialect: "vllm" })}\n${extra}`);
	return {
		folder,
		config,
		environment: (name: string, more: Readonly<Record<string, string>> = {}): Record<string, string> => ({
			PORT: "0",
			DATABASE_URL: database.url,
			DATA_DIR: join(folder, name),
			CONFIG: config,
			INSTANCE_ID: name,
			KEY_PEPPER: PEPPER,
			CONSOLE_SECRET: PEPPER,
			// The lease decides the statement timeout, which must be long: the machine starts many processes at once.
			LEASE_TTL_S: "15",
			...more,
		}),
	};
}
