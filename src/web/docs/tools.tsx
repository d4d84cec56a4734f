import { KEY_VARIABLE } from "../snippets.ts";
import { rich } from "../texts.tsx";
import { TOOLS } from "../tools/all-tools.ts";
import { ToolSteps, useToolFacts } from "../tools/tool-choice.tsx";

export function ToolsSection() {
	const facts = useToolFacts();
	return (
		<>
			<p>
				{rich(
					"From nothing to a streamed answer, tool by tool. Where a key is made, the same lines stand with that key in its place. Keep it in {code}, not in a file that is checked in.",
					{ code: <code>{KEY_VARIABLE}</code> },
				)}
			</p>
			{TOOLS.map((tool) => (
				<section key={tool.id}>
					<h2>{tool.name}</h2>
					<ToolSteps tool={tool} facts={facts} />
				</section>
			))}
		</>
	);
}
