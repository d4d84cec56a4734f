import { CodeBlock, CodeTabs } from "../parts/code.tsx";
import { DataTable } from "../parts/table.tsx";
import { Link } from "../router.tsx";
import { useSession } from "../session.tsx";
import { changeSnippets } from "../snippets.ts";

const FIELDS = [
	{
		from: "system",
		to: "messages[0] with role “system”",
		note: "The top-level system prompt becomes the first message.",
	},
	{ from: "max_tokens", to: "max_tokens", note: "Kept as it is." },
	{ from: "tools[].input_schema", to: "tools[].function.parameters", note: "The schema itself does not change." },
	{
		from: "content blocks",
		to: "content text or content parts",
		note: "Text blocks become text; images become image_url parts.",
	},
	{
		from: "stop_reason",
		to: "choices[0].finish_reason",
		note: "end_turn is stop, tool_use is tool_calls, max_tokens is length.",
	},
	{ from: "usage.input_tokens", to: "usage.prompt_tokens", note: "usage.output_tokens is usage.completion_tokens." },
];

export function MovingSection() {
	const { config } = useSession();
	return (
		<>
			<h2>From the OpenAI client</h2>
			<p>
				Three things change: the base address, the key, and the model. A model name of another vendor must be replaced.
			</p>
			<CodeTabs snippets={changeSnippets(config.baseUrl)} />
			<p>
				Compatible are chat completions, legacy completions (where the <Link to="/models">model</Link> has that mode),
				embeddings and the list of models. The responses and assistants interfaces and tools of a provider's own are not
				offered.
			</p>
			<h2>From a message-format SDK</h2>
			<p>
				This is a change of SDK and of the message format, not only of the address. Use an OpenAI-compatible client, and
				translate:
			</p>
			<DataTable
				label="Fields of the message format"
				rows={FIELDS}
				rowKey={(row) => row.from}
				empty={null}
				columns={[
					{ label: "Message format", lead: true, render: (row) => <code>{row.from}</code> },
					{ label: "Here", render: (row) => <code>{row.to}</code> },
					{ label: "Note", render: (row) => row.note },
				]}
			/>
			<p>A tool, before and after:</p>
			<CodeBlock
				code={`{ "name": "weather", "description": "…", "input_schema": { "type": "object", … } }

{ "type": "function",
  "function": { "name": "weather", "description": "…", "parameters": { "type": "object", … } } }`}
			/>
			<h2>Optional fields</h2>
			<p>
				A field that the deployed model does not support is left out and named in the header{" "}
				<code>x-ignored-parameters</code>; some models refuse such requests with <code>unsupported_parameter</code>{" "}
				instead. The page of each <Link to="/models">model</Link> lists what it honours.
			</p>
		</>
	);
}
