import { CodeBlock, CodeTabs } from "../parts/code.tsx";
import { Link } from "../router.tsx";
import { useSession } from "../session.tsx";
import { showUsd } from "../shown-money.ts";
import { chatSnippets, KEY_VARIABLE } from "../snippets.ts";
import { rich, t } from "../texts.tsx";
import { useExampleModel } from "../tools/tool-choice.tsx";

export function QuickStartSection() {
	const { config } = useSession();
	const model = useExampleModel();
	const messages = [{ role: "user", content: "Name three rivers of Europe." }];
	return (
		<>
			<h2>{t("1. Get access")}</h2>
			<ol>
				<li>
					{rich("<link>Sign up</link> and verify your address.", {
						link: (inner) => <Link to="/sign-up">{inner}</Link>,
					})}
				</li>
				<li>
					{rich("<link>Top up</link> at least {topUpMin}. The credit appears when the payment is verified.", {
						link: (inner) => <Link to="/credit">{inner}</Link>,
						topUpMin: showUsd(config.topUpMinNanoUsd),
					})}
				</li>
				<li>
					{rich("<link>Create a key</link>. Its secret starts with {code} and is shown once.", {
						link: (inner) => <Link to="/keys">{inner}</Link>,
						code: <code>sk_{config.serviceName}_</code>,
					})}
				</li>
			</ol>
			<p>
				{t(
					"Keep the secret in a secret manager, with a key of its own for production, for staging and for each application.",
				)}
			</p>
			<CodeBlock code={`export ${KEY_VARIABLE}=sk_${config.serviceName}_…`} />
			<h2>{t("2. Ask a model")}</h2>
			<p>
				{rich(
					"The base address is {code}. Any client of the chat-completion interface works with it; <link>what to enter into each</link>.",
					{ code: <code>{config.baseUrl}</code>, link: (inner) => <Link to="/docs/tools">{inner}</Link> },
				)}
			</p>
			<CodeTabs snippets={chatSnippets({ baseUrl: config.baseUrl, model, messages })} />
			<h2>{t("3. Stream the answer")}</h2>
			<p>
				{rich(
					"With {code} the answer comes as server-sent events. The last event before {code2} carries the usage that is charged, with {code3} in USD.",
					{ code: <code>stream: true</code>, code2: <code>[DONE]</code>, code3: <code>cost</code> },
				)}
			</p>
			<CodeTabs snippets={chatSnippets({ baseUrl: config.baseUrl, model, messages, stream: true })} />
			<h2>{t("4. See what it cost")}</h2>
			<p>
				{rich(
					"Every answer has an {code}. It leads to the request in the <link>log</link>, line by line, and to the same by the interface:",
					{ code: <code>x-request-id</code>, link: (inner) => <Link to="/requests">{inner}</Link> },
				)}
			</p>
			<CodeBlock code={`curl ${config.baseUrl}/usage/REQUEST_ID -H "Authorization: Bearer $${KEY_VARIABLE}"`} />
			<h2>{t("Before you switch traffic")}</h2>
			<ul>
				<li>{t("Run a small representative set of your requests.")}</li>
				<li>{t("Check tool calls, JSON validation, context limits and the quality of the answers.")}</li>
				<li>{t("Compare the cost by the token counts that were charged.")}</li>
				<li>{t("Keep a way back.")}</li>
			</ul>
		</>
	);
}
