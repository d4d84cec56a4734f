import table from "./database-remedies.yaml" with { type: "text" };

interface Remedies {
	readonly codes: Readonly<Record<string, string>>;
	readonly messages: readonly { readonly code: string; readonly matches: string; readonly remedy: string }[];
}

/** What to do about an unusable database; undefined for unknown errors. */
export function databaseRemedy(error: unknown): string | undefined {
	const { code, message } = error as { code?: unknown; message?: unknown };
	const { codes, messages } = Bun.YAML.parse(String(table)) as Remedies;
	const closer = messages.find((one) => one.code === code && new RegExp(one.matches).test(String(message)));
	return closer?.remedy ?? codes[String(code)];
}
