/** Text of the first run: address, key, and two examples that can be pasted into a shell. */
import type { DemoDescription } from "./demo-models.ts";

export interface BannerData extends Pick<DemoDescription, "models" | "exampleModel" | "portsAsked"> {
	/** For example `http://127.0.0.1:8080`. */
	readonly url: string;
	readonly accountId: string;
	readonly email: string;
	/** Available credit in decimal dollars. */
	readonly availableUsd: string;
	/** Rates in dollars per million tokens. */
	readonly rates: { readonly input: string; readonly output: string };
	/** The key's secret; undefined if an earlier start has shown it. */
	readonly secret: string | undefined;
	readonly shownKey: { readonly prefix: string; readonly lastFour: string };
	/** Shell command that calls this program, such as `tollgate`. */
	readonly command: string;
	/** Sign-in links, each valid once and for `hours`; undefined without links. */
	readonly doors: { readonly customer: string; readonly operator: string; readonly hours: number } | undefined;
}

const MODELS_SHOWN_MAX = 8;
const KEY_VARIABLE = "TOLLGATE_API_KEY";

/** Returns the banner with a final line break. `colour` is only for a terminal. */
export function formatBanner(facts: BannerData, options: { colour: boolean }): string {
	const bold = (text: string) => (options.colour ? `\x1b[1m${text}\x1b[0m` : text);
	return [
		"",
		`  ${bold("Tollgate is running:")} ${facts.url}`,
		"",
		...modelLines(facts),
		`  Account  ${facts.email}, USD ${facts.availableUsd} of demo credit; input USD ${facts.rates.input}, output USD ${facts.rates.output} per million tokens`,
		...keyLines(facts, bold),
		"",
		...consoleLines(facts, bold),
		"",
		`  ${bold("Send a request:")}`,
		"",
		curlLine(facts),
		"",
		`  ${bold("Or use an OpenAI SDK")} (npm install openai; save as try.mjs, run with node try.mjs):`,
		"",
		sdkSnippet(facts),
		"",
		"  This is the demo with its own data. Set DATABASE_URL or write a tollgate.yaml to turn it off: see the README.",
		"  Ctrl-C stops.",
		"",
		"",
	].join("\n");
}

function curlLine(facts: BannerData): string {
	const body = { model: facts.exampleModel, messages: [{ role: "user", content: "Hello! Who are you?" }] };
	const key = facts.secret ?? `$${KEY_VARIABLE}`;
	// In double quotes the shell expands the variable.
	return `curl ${facts.url}/v1/chat/completions -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" -d ${shellQuoted(JSON.stringify(body))}`;
}

function sdkSnippet(facts: BannerData): string {
	const key = facts.secret === undefined ? `process.env.${KEY_VARIABLE}` : JSON.stringify(facts.secret);
	return [
		'import OpenAI from "openai";',
		`const client = new OpenAI({ baseURL: ${JSON.stringify(`${facts.url}/v1`)}, apiKey: ${key} });`,
		"const stream = await client.chat.completions.create({",
		`  model: ${JSON.stringify(facts.exampleModel)},`,
		'  messages: [{ role: "user", content: "Hello! Who are you?" }],',
		"  stream: true,",
		"});",
		'for await (const event of stream) process.stdout.write(event.choices[0]?.delta?.content ?? "");',
	].join("\n");
}

function modelLines(facts: BannerData): string[] {
	const shown = facts.models.slice(0, MODELS_SHOWN_MAX).map(({ id, origin }) => `${id} (${origin})`);
	const more = facts.models.length - shown.length;
	if (more > 0) shown.push(`and ${more} more: GET /v1/models`);
	const lines = shown.map((text, at) => `  ${at === 0 ? "Models " : "       "}  ${text}`);
	if (facts.portsAsked.length > 0) {
		lines.push(
			`           No model server answered on the usual ports of this machine (${facts.portsAsked.join(", ")}).`,
		);
	}
	return lines;
}

function keyLines(facts: BannerData, bold: (text: string) => string): string[] {
	if (facts.secret !== undefined) {
		return [`  API key  ${bold(facts.secret)}`, "           Store it now: it is shown only once."];
	}
	const { prefix, lastFour } = facts.shownKey;
	return [
		`  API key  ${prefix}…${lastFour}, shown at the first start. The examples read it from ${KEY_VARIABLE}.`,
		"           Lost it? Create another:",
		"",
		`${facts.command} key create --account ${facts.accountId} --name another`,
		"",
		`export ${KEY_VARIABLE}=`,
	];
}

function consoleLines({ url, doors }: BannerData, bold: (text: string) => string): string[] {
	const head = `  ${bold("Open the console:")}`;
	if (doors === undefined) return [`${head} ${url}/sign-in`];
	return [
		`${head} each link signs you in once, on this machine, for ${doors.hours} hours.`,
		"  The customer has a week of sample usage; the operator sees the whole service.",
		"",
		`  Customer  ${doors.customer}`,
		`  Operator  ${doors.operator}`,
	];
}

/** Quotes a word for a POSIX shell. */
export function shellQuoted(text: string): string {
	return /^[A-Za-z0-9_./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
