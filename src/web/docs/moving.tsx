import { CodeBlock, CodeTabs } from "../parts/code.tsx";
import { DataTable } from "../parts/table.tsx";
import { Link } from "../router.tsx";
import { useSession } from "../session.tsx";
import { changeSnippets } from "../snippets.ts";
import { rich, t } from "../texts.tsx";

const FIELDS = [
	{
		from: "system",
		to: "messages[0] with role “system”",
		note: t("The top-level system prompt becomes the first message."),
	},
	{ from: "max_tokens", to: "max_tokens", note: t("Kept as it is.") },
	{ from: "tools[].input_schema", to: "tools[].function.parameters", note: t("The schema itself does not change.") },
	{
		from: "content blocks",
		to: "content text or content parts",
		note: t("Text blocks become text; images become image_url parts."),
	},
	{
		from: "stop_reason",
		to: "choices[0].finish_reason",
		note: t("end_turn is stop, tool_use is tool_calls, max_tokens is length."),
	},
	{ from: "usage.input_tokens", to: "usage.prompt_tokens", note: t("usage.output_tokens is usage.completion_tokens.") },
];

export function MovingSection() {
	const { config } = useSession();
	return (
		<>
			<h2>{t("From the OpenAI client")}</h2>
			<p>
				{t(
					"Three things change: the base address, the key, and the model. A model name of another vendor must be replaced.",
				)}
			</p>
			<CodeTabs snippets={changeSnippets(config.baseUrl)} />
			<p>
				{rich(
					"Compatible are chat completions, legacy completions (where the <link>model</link> has that mode), embeddings and the list of models. The responses and assistants interfaces and tools of a provider's own are not offered.",
					{ link: (inner) => <Link to="/models">{inner}</Link> },
				)}
			</p>
			<h2>{t("From a message-format SDK")}</h2>
			<p>
				{t(
					"This is a change of SDK and of the message format, not only of the address. Use an OpenAI-compatible client, and translate:",
				)}
			</p>
			<DataTable
				label={t("Fields of the message format")}
				rows={FIELDS}
				rowKey={(row) => row.from}
				empty={null}
				columns={[
					{ label: t("Message format"), lead: true, render: (row) => <code>{row.from}</code> },
					{ label: t("Here"), render: (row) => <code>{row.to}</code> },
					{ label: t("Note"), render: (row) => row.note },
				]}
			/>
			<p>{t("A tool, before and after:")}</p>
			<CodeBlock
				code={`{ "name": "weather", "description": "…", "input_schema": { "type": "object", … } }

{ "type": "function",
  "function": { "name": "weather", "description": "…", "parameters": { "type": "object", … } } }`}
			/>
			<h2>{t("Optional fields")}</h2>
			<p>
				{rich(
					"A field that the deployed model does not support is left out and named in the header {code}; some models refuse such requests with {code2} instead. The page of each <link>model</link> lists what it honours.",
					{
						code: <code>x-ignored-parameters</code>,
						code2: <code>unsupported_parameter</code>,
						link: (inner) => <Link to="/models">{inner}</Link>,
					},
				)}
			</p>
		</>
	);
}
