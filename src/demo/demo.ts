import { dirname } from "node:path";
import { systemClock } from "../base/clock.ts";
import { newId } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import { confirmTopUp, createTopUp, listTopUps, TOP_UP_NANO_USD_MIN } from "../billing/top-ups.ts";
import type { Config } from "../config.ts";
import { createOperator, listOperators } from "../console/operator/operator-admin.ts";
import { createSignInLink, type LinkPage } from "../console/sign-in/new-sign-in-link.ts";
import { createStatements, type Statements } from "../db/statements.ts";
import { createAccount, findAccount } from "../keys/account-admin.ts";
import { createKey, type KeyMakerDeps, type KeyRecord, listKeys } from "../keys/key-admin.ts";
import { createDigest, shownParts } from "../keys/secret.ts";
import { accountBalance } from "../ledger/balance.ts";
import { formatUsd } from "../money/nano-usd.ts";
import { type BannerData, formatBanner, shellQuoted } from "./banner.ts";
import { DEMO_DATA_SUFFIX, ensureDemoHistory } from "./demo-history.ts";
import type { DemoDescription } from "./demo-models.ts";
import { DEMO_RATES } from "./found-model.ts";

/** First run: `serve` without a database and a catalogue. Other starts do not load this code. */

export interface DemoDeps {
	readonly log: Log;
	readonly databaseUrl: string;
	readonly out: (text: string) => void;
	/** True if `out` is a terminal, where the banner has colours. */
	readonly colour: boolean;
}

export interface DemoService {
	/** URL at which this machine reaches the service. */
	readonly url: string;
	readonly keyPepper: string;
	/** True if the pepper of key digests was just generated: then no earlier key works. */
	readonly newPepper: boolean;
	readonly serviceName: string;
	/** Shell command that calls this program. */
	readonly command: string;
	readonly publicUrl: string | null;
}

const DEMO_OPERATOR_EMAIL = "operator@localhost";
const STATEMENT_DEADLINE_MS = 10_000;
const LINK_HOURS = 12;

/** Creates the demo's account and prints the banner. */
export async function printDemoBanner(
	deps: DemoDeps,
	service: DemoService,
	description: DemoDescription,
): Promise<void> {
	const statements = createStatements(
		{ clock: systemClock, log: deps.log },
		{
			url: deps.databaseUrl,
			applicationName: "tollgate demo",
			connectionsMax: 1,
			statementDeadlineMs: STATEMENT_DEADLINE_MS,
		},
	);
	try {
		await greet(statements, deps, service, description);
	} finally {
		await statements.end();
	}
}

async function greet(
	statements: Statements,
	deps: Pick<DemoDeps, "out" | "colour">,
	service: DemoService,
	description: DemoDescription,
): Promise<void> {
	const clock = systemClock;
	const { url } = service;
	const keyMaker = { statements, digest: createDigest(service.keyPepper), serviceName: service.serviceName };
	const account = await ensureDemoAccount(keyMaker, { nowMs: clock.wallMs(), newPepper: service.newPepper });
	await ensureDemoHistory({ ...keyMaker, clock }, { accountId: account.id, models: description.chatModels });
	const balance = await accountBalance(statements, account.id);
	const facts: BannerData = {
		url,
		models: description.models,
		exampleModel: description.exampleModel,
		portsAsked: description.portsAsked,
		accountId: account.id,
		email: DEMO_EMAIL,
		availableUsd: formatUsd(balance.available),
		rates: DEMO_RATES,
		secret: account.secret,
		shownKey: account.key,
		command: service.command,
		doors: await openDoors(statements, url, service.publicUrl),
	};
	deps.out(formatBanner(facts, { colour: deps.colour }));
}

/** Creates sign-in links for this machine. None with PUBLIC_URL, because a session is valid for one origin only. */
async function openDoors(statements: Statements, url: string, publicUrl: string | null): Promise<BannerData["doors"]> {
	if (publicUrl !== null) return undefined;
	await ensureDemoPeople(statements);
	const link = async (email: string, page: LinkPage) =>
		`${url}${await createSignInLink(statements, { email, page, hours: LINK_HOURS })}`;
	return {
		customer: await link(DEMO_EMAIL, "customer"),
		operator: await link(DEMO_OPERATOR_EMAIL, "operator"),
		hours: LINK_HOURS,
	};
}

/** Returns the shell command that calls the program with this server's DATA_DIR, unless that is the default. */
export function shellCommand(config: Pick<Config, "dataDir" | "env">, program: string): string {
	// `dataDir` is the demo's subfolder `DATA_DIR/demo`, so DATA_DIR is its parent.
	return config.env.DATA_DIR ? `DATA_DIR=${shellQuoted(dirname(config.dataDir))} ${program}` : program;
}

/**
 * Creates the demo's two users, an operator and the customer who owns the demo's account. They sign in by link, without
 * a password.
 */
async function ensureDemoPeople(statements: Statements): Promise<void> {
	await statements`
		insert into console_user (id, name, email, email_verified) values (${newId("usr")}, 'Demo customer', ${DEMO_EMAIL}, true)
		on conflict (email) do nothing`;
	const operators = await listOperators(statements);
	if (operators.every(({ email }) => email !== DEMO_OPERATOR_EMAIL))
		await createOperator(statements, DEMO_OPERATOR_EMAIL, "link");
}

const DEMO_EMAIL = "demo@localhost";
const ACTOR = "demo";
const PAGE_ROWS = 100;

/**
 * Creates what the demo's account lacks: a top-up of USD 100 in play money, and a key. `secret` is set for a new key,
 * and can be shown only once; `key` is the new key or the newest one that works. With `newPepper` no earlier key works.
 */
export async function ensureDemoAccount(deps: KeyMakerDeps, options: { nowMs: number; newPepper: boolean }) {
	const { statements, serviceName } = deps;
	const found = await findAccount(statements, DEMO_EMAIL);
	const { id } = found ?? (await createAccount(statements, { email: DEMO_EMAIL, name: "Demo", vouched: true }));
	await ensureTopUp(statements, id);
	const keys = await listKeys(statements, id, { limit: PAGE_ROWS });
	const working = options.newPepper ? undefined : keys.items.find((key) => isWorking(key, serviceName, options.nowMs));
	if (working !== undefined) return { id, secret: undefined, key: working };
	const made = await createKey(deps, id, { name: "demo" });
	return { id, secret: made.secret, key: shownParts(made.secret, serviceName) };
}

async function ensureTopUp(statements: Statements, accountId: string): Promise<void> {
	const { items } = await listTopUps(statements, { accountId }, { limit: PAGE_ROWS });
	if (items.some(({ state }) => state === "confirmed")) return;
	const waiting = items.find(({ method, state }) => method === "demo" && state === "pending");
	const topUp =
		waiting ?? (await createTopUp(statements, { accountId, ...DEMO_TOP_UP, reference: `demo ${accountId}` }));
	await confirmTopUp(statements, topUp.id, ACTOR);
}

const DEMO_TOP_UP = { amountNanoUsd: TOP_UP_NANO_USD_MIN, method: "demo" } as const;

/** True if the key works. A key's prefix contains SERVICE_NAME, and keys with an earlier SERVICE_NAME are refused. */
function isWorking(key: KeyRecord, serviceName: string, nowMs: number): boolean {
	if (key.name.endsWith(DEMO_DATA_SUFFIX)) return false;
	const lives = key.state === "active" && key.replacedBy === null && (key.expiresAtMs ?? Infinity) > nowMs;
	return lives && key.prefix.startsWith(`sk_${serviceName}_`);
}
