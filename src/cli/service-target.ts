import { type CommandContext, type CommandInput, type OptionSpec, UsageError } from "./command.ts";

/** Where commands find the customer's key: never among arguments, which other users of the machine can see. */
export const SERVICE_KEY_VARIABLE = "TOLLGATE_API_KEY";
const URL_VARIABLE = "TOLLGATE_URL";
const URL_DEFAULT = "http://127.0.0.1:8080";

/** A running service, as a customer's program reaches it. */
export interface ServiceTarget {
	/** Without `/v1`, and without a slash at its end. */
	readonly url: string;
	/** Pays for what is asked. */
	readonly apiKey: string;
}

export const serviceUrlOption: OptionSpec = {
	type: "string",
	value: "URL",
	help: `the service [${URL_VARIABLE}, or ${URL_DEFAULT}]`,
};

export function serviceTarget({ env }: CommandContext, input: CommandInput): ServiceTarget {
	const apiKey = env[SERVICE_KEY_VARIABLE];
	if (!apiKey) throw new UsageError(`set ${SERVICE_KEY_VARIABLE} to the API key that pays for it`);
	const url = input.option("url") ?? (env[URL_VARIABLE] || URL_DEFAULT);
	return { url: url.replace(/\/+$/, "").replace(/\/v1$/, ""), apiKey };
}
