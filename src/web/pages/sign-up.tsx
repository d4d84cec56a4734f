import { Button } from "@mantine/core";
import { useEffect, useState } from "react";
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "../../console/views.ts";
import { authApi } from "../auth-api.ts";
import { brand } from "../brand.ts";
import { AuthLayout } from "../parts/auth-layout.tsx";
import { EmailField, NameField, NewPasswordField } from "../parts/fields.tsx";
import { Form } from "../parts/form.tsx";
import { MailSent } from "../parts/mail-sent.tsx";
import { Notice } from "../parts/problem.tsx";
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
			<AuthLayout title={t("Sign up")}>
				<Notice>{t("New accounts are made by invitation here. Ask the operator of this service.")}</Notice>
			</AuthLayout>
		);
	}
	if (sentTo) {
		return (
			<AuthLayout title={t("Check your mail")} below={<Link to="/sign-in">{t("Sign in")}</Link>}>
				<MailSent email={sentTo} what="verify" />
			</AuthLayout>
		);
	}
	return (
		<AuthLayout
			title={t("Sign up")}
			below={rich("Signed up before? <link>Sign in</link>", {
				link: (inner) => (
					<Link to={`/sign-in${query.has("next") ? `?next=${encodeURIComponent(next)}` : ""}`}>{inner}</Link>
				),
			})}
		>
			<SignUpForm next={next} onSent={setSentTo} />
			<Providers next={next} />
		</AuthLayout>
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
		<Form
			onSubmit={() => {
				if (!tooShort) void signUp.run();
			}}
			error={signUp.error}
			end={
				<Button type="submit" loading={signUp.busy}>
					{t("Sign up")}
				</Button>
			}
		>
			<NameField value={name} onChange={setName} />
			<EmailField autoComplete="email" value={email} onChange={setEmail} />
			<NewPasswordField maxLength={PASSWORD_CHARS_MAX} value={password} onChange={setPassword} />
			{brand.terms && <TermsBox terms={brand.terms} />}
		</Form>
	);
}
