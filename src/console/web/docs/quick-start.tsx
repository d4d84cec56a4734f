import { api } from "../api.ts";
import { CodeBlock, CodeTabs } from "../parts/code.tsx";
import { useResource } from "../resource.ts";
import { Link } from "../router.tsx";
import { useSession } from "../session.tsx";
import { showUsd } from "../shown-money.ts";
import { chatSnippets, KEY_VARIABLE } from "../snippets.ts";

export function QuickStartSection() {
	const { config } = useSession();
	const models = useResource("models", api.models);
	const model =
		models.data?.items.find((item) => item.status === "connected" && item.modes.includes("chat"))?.id ?? "MODEL_ID";
	const messages = [{ role: "user", content: "Name three rivers of Europe." }];
	return (
		<>
			<h2>1. Get access</h2>
			<ol>
				<li>
					<Link to="/sign-up">Sign up</Link> and verify your address.
				</li>
				<li>
					<Link to="/credit">Top up</Link> at least {showUsd(config.topUpMinNanoUsd)}. The credit appears when the
					payment is verified.
				</li>
				<li>
					<Link to="/keys">Create a key</Link>. Its secret starts with <code>sk_{config.serviceName}_</code> and is
					shown once.
				</li>
			</ol>
			<p>
				Keep the secret in a secret manager, with a key of its own for production, for staging and for each application.
			</p>
			<CodeBlock code={`export ${KEY_VARIABLE}=sk_${config.serviceName}_…`} />
			<h2>2. Ask a model</h2>
			<p>
				The base address is <code>{config.baseUrl}</code>. Any client of the chat-completion interface works with it.
			</p>
			<CodeTabs snippets={chatSnippets({ baseUrl: config.baseUrl, model, messages })} />
			<h2>3. Stream the answer</h2>
			<p>
				With <code>stream: true</code> the answer comes as server-sent events. The last event before <code>[DONE]</code>{" "}
				carries the usage that is charged, with <code>cost</code> in USD.
			</p>
			<CodeTabs snippets={chatSnippets({ baseUrl: config.baseUrl, model, messages, stream: true })} />
			<h2>4. See what it cost</h2>
			<p>
				Every answer has an <code>x-request-id</code>. It leads to the request in the <Link to="/requests">log</Link>,
				line by line, and to the same by the interface:
			</p>
			<CodeBlock code={`curl ${config.baseUrl}/usage/REQUEST_ID -H "Authorization: Bearer $${KEY_VARIABLE}"`} />
			<h2>Before you switch traffic</h2>
			<ul>
				<li>Run a small representative set of your requests.</li>
				<li>Check tool calls, JSON validation, context limits and the quality of the answers.</li>
				<li>Compare the cost by the token counts that were charged.</li>
				<li>Keep a way back.</li>
			</ul>
		</>
	);
}
