import type { Config } from "../../config.ts";
import type { Durability } from "../../db/durability.ts";
import { durabilityProblem } from "../../db/durability.ts";
import type { findingsOf } from "./finding.ts";

type Found = ReturnType<typeof findingsOf>;

/** What a server says of itself and of the way to it. */
export interface DatabaseServer {
	readonly version: string;
	readonly number: string;
	readonly encoding: string;
	/** Whether the connection is encrypted; null if it is no connection of a network. */
	readonly ssl: boolean | null;
	/** It is on this machine. */
	readonly local: boolean;
}

/** How it keeps what it is given, as it says it. */
export interface DatabaseSettings {
	readonly fsync: string;
	readonly pages: string;
	readonly readonly: string;
	readonly standby: boolean;
	readonly durability: Durability;
}

const LATENCY_MS_WARNING = 10;
const VERSION_TESTED = 18;
/** Older ones lack statements that the schema is made with. */
const VERSION_MIN = 14;

export function judgeServer({ version, number, encoding, ssl, local }: DatabaseServer, found: Found): void {
	const major = Math.floor(Number(number) / 10_000);
	if (major < VERSION_MIN)
		found.broken(
			`PostgreSQL ${version} is too old`,
			`Take PostgreSQL ${VERSION_TESTED}; ${VERSION_MIN} is the oldest that will do.`,
		);
	else if (major < VERSION_TESTED) found.note(`PostgreSQL ${version} is there; the tests run on ${VERSION_TESTED}`);
	else found.ok(`PostgreSQL ${version} is there`);
	if (encoding !== "UTF8") found.broken(`the database's encoding is ${encoding}`, "Make it anew with encoding UTF8.");
	if (ssl === false && !local)
		found.warn(
			"the connection to the database is not encrypted",
			"Add ?sslmode=require to DATABASE_URL, or keep that network to yourself.",
		);
}

export function judgeRoundTrip(tookMs: number, { journal }: Pick<Config, "journal">, found: Found): void {
	const said = `it answers in ${tookMs.toFixed(1)} ms`;
	if (tookMs <= LATENCY_MS_WARNING) found.ok(said);
	else if (journal === "remote")
		found.warn(said, "With JOURNAL=remote every answer waits for two commits: bring the database nearer.");
	else found.warn(said, "Bring the database nearer: new keys, drawn credit and the console wait for it.");
}

export function judgeSettings({ fsync, pages, readonly, standby, durability }: DatabaseSettings, found: Found): void {
	const { commit } = durability;
	const before = found.list.length;
	if (standby) found.broken("this server is a standby: it takes no writes", "Point DATABASE_URL at the primary.");
	else if (readonly === "on")
		found.broken(
			"transactions are read-only by default",
			"Set default_transaction_read_only = off for this role and database.",
		);
	if (fsync === "off") found.broken("fsync is off: a crash of its machine destroys the books", "Set fsync = on.");
	if (pages === "off")
		found.warn(
			"full_page_writes is off: a crash of its machine can damage the books",
			"Set full_page_writes = on, unless its file system never tears a page.",
		);
	if (commit === "off")
		found.broken(
			"synchronous_commit is off: what it has confirmed can be lost, and the journal is gone by then",
			"Set synchronous_commit = on for this role and database.",
		);
	const lossy = commit === "off" ? undefined : durabilityProblem(durability);
	if (lossy !== undefined)
		found.warn(
			lossy,
			"Name a standby in synchronous_standby_names, with synchronous_commit = on, and fail over to it alone.",
		);
	if (found.list.length === before) found.ok(`what it confirms is on its disk (synchronous_commit = ${commit})`);
}

export function judgeSessions(isPooled: boolean, found: Found): void {
	if (isPooled)
		found.broken(
			"a pooler hands sessions of the database around between transactions: revocations and other news would not be heard",
			"Connect to PostgreSQL itself, or set the pooler to session mode.",
		);
	else found.ok("a session is ours until we end it");
}

/** Of what connections begin with. That their search_path is lost is no verdict: nothing works then. */
export function judgeLost(settings: readonly string[], found: Found): void {
	if (settings.length === 0) return;
	found.warn(
		`connections to the database lose settings on their way: ${settings.join(", ")}`,
		"Connect to PostgreSQL itself, or have the pooler pass them on: a row that somebody holds keeps us waiting for longer.",
	);
}
