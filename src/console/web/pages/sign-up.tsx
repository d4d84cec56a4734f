import { Button, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "../../sign-in/password-length.ts";
import { authApi } from "../auth-api.ts";
import { brand } from "../brand.ts";
import { Door } from "../parts/door.tsx";
import { MailSent } from "../parts/mail-sent.tsx";
import { PasswordField } from "../parts/password-field.tsx";
import { Notice, Problem } from "../parts/problem.tsx";
import { useAction } from "../resource.ts";
import { Link, navigate, safeNext, usePlace } from "../router.tsx";
import { useSession } from "../session.tsx";
import { rich, t } from "../texts.tsx";
import { Providers } from "./sign-in.tsx";
import { TermsBox } from "./terms.tsx";

export function SignUpPage() {
	const { config, me } = useSession();
	const { query } = usePlace();
	const next = safeNext(query.get("next"));
	const [sentTo, setSentTo] = useState<string>();
	useEffect(() => {
		if (me) navigate(next, { replace: true });
	}, [me, next]);

	if (!config.signUp) {
		return (
			<Door title={t("Sign up")}>
				<Notice>{t("New accounts are made by invitation here. Ask the operator of this service.")}</Notice>
			</Door>
		);
	}
	if (sentTo) {
		return (
			<Door title={t("Check your mail")} below={<Link to="/sign-in">{t("Sign in")}</Link>}>
				<MailSent email={sentTo} what="verify" />
			</Door>
		);
	}
	return (
		<Door
			title={t("Sign up")}
			below={rich("Signed up before? <link>Sign in</link>", {
				link: (inner) => (
					<Link to={`/sign-in${query.has("next") ? `?next=${encodeURIComponent(next)}` : ""}`}>{inner}</Link>
				),
			})}
		>
			<SignUpForm next={next} onSent={setSentTo} />
			<Providers next={next} />
		</Door>
	);
}

function SignUpForm({ next, onSent }: { next: string; onSent: (email: string) => void }) {
	const [name, setName] = useState("");
	const [email, setEmail] = useState("");
	const [password, setPassword] = useState("");
	const signUp = useAction(async () => {
		const acceptedTerms = brand.terms?.version ?? null;
		await authApi.signUp({ name: name.trim(), email: email.trim(), password, next, acceptedTerms });
		onSent(email.trim());
	});
	const tooShort = password !== "" && password.length < PASSWORD_CHARS_MIN;
	return (
		<form
			className="form"
			onSubmit={(event) => {
				event.preventDefault();
				if (!tooShort) void signUp.run();
			}}
		>
			<TextInput
				label={t("Name")}
				description={t("Of you or your company")}
				autoComplete="name"
				required
				withAsterisk={false}
				maxLength={100}
				value={name}
				onChange={(event) => setName(event.currentTarget.value)}
			/>
			<TextInput
				label={t("Email")}
				type="email"
				autoComplete="email"
				required
				withAsterisk={false}
				value={email}
				onChange={(event) => setEmail(event.currentTarget.value)}
			/>
			<PasswordField
				label={t("Password")}
				description={t("At least {count} characters", { count: PASSWORD_CHARS_MIN })}
				autoComplete="new-password"
				minLength={PASSWORD_CHARS_MIN}
				maxLength={PASSWORD_CHARS_MAX}
				value={password}
				onChange={setPassword}
			/>
			{brand.terms && <TermsBox terms={brand.terms} />}
			{signUp.error && <Problem error={signUp.error} />}
			<Button type="submit" loading={signUp.busy}>
				{t("Sign up")}
			</Button>
		</form>
	);
}
