export const docs = {
	"A file of requests, one a line, is worked through within a day when the models have room, where a <link>model</link> takes batches and at its rates for them. Code for OpenAI's files and batches works unchanged.":
		"Eine Datei mit einer Anfrage je Zeile wird binnen eines Tages abgearbeitet, wenn die Modelle Platz haben, sofern ein <link>Modell</link> Stapel annimmt, zu dessen Stapelpreisen. Code für die Dateien und Stapel von OpenAI läuft unverändert.",
	"Start one": "Einen starten",
	"Drop the file on the page of batches, run {code}, or:":
		"Ziehen Sie die Datei auf die Stapelseite, führen Sie {code} aus oder:",
	"What becomes of it": "Was daraus wird",
	"Each line is answered and charged once at most, to the key that began the batch. Without credit it pauses, says so in {code}, and goes on after a top-up. Its answers are in the output file, in any order: find them by {code2}. What failed, or was not sent when a batch was cancelled or its day was over, is in the error file with the reason.":
		"Jede Zeile wird höchstens einmal beantwortet und berechnet, zulasten des Schlüssels, der den Stapel begonnen hat. Ohne Guthaben hält er an, sagt es in {code} und läuft nach einer Aufladung weiter. Seine Antworten stehen in der Ausgabedatei, in beliebiger Reihenfolge: Finden Sie sie über {code2}. Was fehlschlug oder nicht gesendet wurde, weil ein Stapel abgebrochen wurde oder sein Tag vorbei war, steht mit dem Grund in der Fehlerdatei.",
	"Hear of its end": "Von seinem Ende erfahren",
	"An owner of the account may switch mails and a webhook on in the settings. The webhook is called with the type {code}, {code2}, {code3} or {code4}:":
		"Ein Inhaber des Kontos kann in den Einstellungen E-Mails und einen Webhook einschalten. Der Webhook wird mit dem Typ {code}, {code2}, {code3} oder {code4} aufgerufen:",
	"It is signed after Standard Webhooks, in the headers {code}, {code2} and {code3}. Check the bytes as they came, with the secret of the settings:":
		"Er ist nach Standard Webhooks signiert, in den Kopfzeilen {code}, {code2} und {code3}. Prüfen Sie die Bytes so, wie sie kamen, mit dem Geheimnis aus den Einstellungen:",
	"Answer with any status from 200 to 299 within ten seconds. Else it is called again for three days, ever more rarely; 410 ends that. The same event may arrive twice, with the same {code}.":
		"Antworten Sie binnen zehn Sekunden mit einem Status von 200 bis 299. Sonst wird drei Tage lang erneut aufgerufen, immer seltener; 410 beendet das. Dasselbe Ereignis kann zweimal eintreffen, mit derselben {code}.",
	"Search the docs": "Dokumentation durchsuchen",
	"Search, press /": "Suchen, Taste /",
	"Found in the docs": "In der Dokumentation gefunden",
	"Nothing was found.": "Nichts gefunden.",
	"First top-up": "Erste Aufladung",
	"At least {topUpMin}": "Mindestens {topUpMin}",
	"Each later top-up": "Jede weitere Aufladung",
	"At least {topUpMin}, at most {topUpMax}": "Mindestens {topUpMin}, höchstens {topUpMax}",
	"Automatic top-ups": "Automatisches Aufladen",
	"By a saved card, set on the credit page: below an amount buy another, at most so much a calendar month. One payment for each time that the balance falls below; credit is there when it has cleared. A declined card stops them, and a payment that the bank wants confirmed waits for you; both are told by mail":
		"Mit einer hinterlegten Karte, einzurichten auf der Guthabenseite: unterhalb eines Betrags wird ein anderer gekauft, höchstens so viel im Kalendermonat. Eine Zahlung für jedes Mal, dass der Saldo darunterfällt; das Guthaben ist da, sobald sie ausgeführt ist. Eine abgelehnte Karte beendet sie, und eine Zahlung, deren Bestätigung die Bank verlangt, wartet auf Sie; beides wird per E-Mail mitgeteilt",
	"Remaining balance": "Restguthaben",
	"Stays usable as long as it covers the request, however small it is":
		"Bleibt nutzbar, solange es die Anfrage deckt, wie klein es auch ist",
	"A request is admitted if the most that it can cost is available. That amount is held while it runs; when it ends, the actual cost is charged and the rest is free again. Lower {code} to hold less.":
		"Eine Anfrage wird zugelassen, wenn verfügbar ist, was sie höchstens kosten kann. Dieser Betrag ist reserviert, solange sie läuft; endet sie, werden die tatsächlichen Kosten berechnet, und der Rest ist wieder frei. Senken Sie {code}, um weniger zu reservieren.",
	"Spending cap": "Obergrenze",
	"Optional, in USD, for the key's lifetime or each day, week or month. Counts what was charged and what running requests hold":
		"Freiwillig, in USD, für die gesamte Lebensdauer des Schlüssels oder jeden Tag, jede Woche oder jeden Monat. Zählt Berechnetes und was laufende Anfragen reservieren",
	"Optional list; empty means all available models": "Freiwillige Liste; leer bedeutet alle verfügbaren Modelle",
	"Requests a minute, requests at a time": "Anfragen pro Minute, gleichzeitige Anfragen",
	"Optional, per key; beyond them 429 with retry-after": "Freiwillig, je Schlüssel; darüber hinaus 429 mit retry-after",
	Rotation: "Ersetzen",
	"Make a replacement, change the application over, revoke the old key":
		"Legen Sie einen Ersatz an, stellen Sie die Anwendung um und widerrufen Sie den alten Schlüssel",
	Revocation: "Widerruf",
	"New requests are refused at once. Requests already admitted finish and are charged":
		"Neue Anfragen werden sofort abgewiesen. Bereits zugelassene laufen zu Ende und werden berechnet",
	"Context and output limits are those of each <link>model</link>. The body of a request may have 32 MB, unless the operator of the service has set another limit.":
		"Für Kontext und Ausgabe gelten die Grenzen des jeweiligen <link>Modells</link>. Der Inhalt einer Anfrage darf 32 MB groß sein, sofern der Betreiber des Dienstes keine andere Grenze gesetzt hat.",
	Availability: "Verfügbarkeit",
	"Which models and services are connected stands in {code} and on the <link>status page</link>. A listed rate does not say that a model is connected.":
		"Welche Modelle und Dienste verbunden sind, steht in {code} und auf der <link>Statusseite</link>. Ein aufgeführter Preis sagt nicht, dass ein Modell verbunden ist.",
	yes: "ja",
	"his own": "eigene",
	"Each member of an account has one role in it. Owners and admins give roles, in the settings; a new role counts from the next click. Everybody sees the account's figures, nobody a key's secret but who makes it.":
		"Jedes Mitglied eines Kontos hat darin eine Rolle. Inhaber und Administratoren vergeben Rollen in den Einstellungen; eine neue Rolle gilt ab dem nächsten Klick. Alle sehen die Zahlen des Kontos, das Geheimnis eines Schlüssels sieht nur, wer ihn anlegt.",
	"What each role may do": "Was jede Rolle darf",
	May: "Darf",
	"A developer sees, uses and changes the keys that he made; a replacement of such a key is his too. Batches and their files belong to the whole account, as they do for its keys. “{member}” is who joined before there were roles: he may what he could before, until an owner or admin gives him one of the others.":
		"Ein Entwickler sieht, benutzt und ändert die Schlüssel, die er angelegt hat; auch der Ersatz eines solchen Schlüssels gehört ihm. Stapel und ihre Dateien gehören dem ganzen Konto, wie auch für seine Schlüssel. „{member}“ ist, wer beitrat, bevor es Rollen gab: Er darf, was er zuvor durfte, bis ein Inhaber oder Administrator ihm eine der anderen gibt.",
	"Who loses the right to keys has still seen the secrets of those that he made. So whoever takes it away, or removes him, says whether these keys are revoked.":
		"Wer das Recht an Schlüsseln verliert, hat die Geheimnisse der von ihm angelegten dennoch gesehen. Wer es entzieht oder ihn entfernt, sagt daher, ob diese Schlüssel widerrufen werden.",
	"Quick start": "Schnelleinstieg",
	"Moving over": "Umstieg",
	Roles: "Rollen",
	"API reference": "API-Referenz",
	"Mend the request; {code} names the field.": "Berichtigen Sie die Anfrage; {code} nennt das Feld.",
	"Use a key that is active.": "Verwenden Sie einen aktiven Schlüssel.",
	"Not to be sent again as it is. But for top_up_required the error says what is available, held and required, and, where a shorter answer would do, how many tokens would have fitted.":
		"Nicht unverändert erneut senden. Außer bei top_up_required sagt der Fehler, was verfügbar, reserviert und nötig ist und, wo eine kürzere Antwort möglich wäre, wie viele Token gepasst hätten.",
	"The key's or its project's list of models does not have it, the account is suspended or nobody has signed in to it, the project was archived, or the key only reads.":
		"Die Modellliste des Schlüssels oder seines Projekts enthält es nicht, das Konto ist gesperrt oder niemand hat sich dafür angemeldet, das Projekt wurde archiviert, oder der Schlüssel liest nur.",
	"Take an id from GET /v1/models.": "Nehmen Sie eine Kennung aus GET /v1/models.",
	"Not to be sent again as it is: the error says why. With {code}: the first request with this Idempotency-Key is still running; wait for it.":
		"Nicht unverändert erneut senden: Der Fehler sagt, warum. Mit {code}: Die erste Anfrage mit diesem Idempotency-Key läuft noch; warten Sie auf sie.",
	"A fault of the service. Send it again, and name the x-request-id if it stays.":
		"Ein Fehler des Dienstes. Senden Sie sie erneut und nennen Sie die x-request-id, wenn er bleibt.",
	"The request itself is at fault.": "Die Anfrage selbst ist fehlerhaft.",
	"A limit of your key, its project or your account, or too many wrong keys from your address. Wait for {code} seconds, then send it again.":
		"Eine Grenze Ihres Schlüssels, seines Projekts oder Ihres Kontos, oder zu viele falsche Schlüssel von Ihrer Adresse. Warten Sie {code} Sekunden und senden Sie sie dann erneut.",
	"The model's server failed. Send it again, a few times at most.":
		"Der Modellserver ist ausgefallen. Senden Sie sie erneut, höchstens einige Male.",
	"No server for this model or service is connected. With {code}: a passing state, busy servers for instance; send it again.":
		"Für dieses Modell oder diesen Dienst ist kein Server verbunden. Mit {code}: ein vorübergehender Zustand, etwa ausgelastete Server; senden Sie sie erneut.",
	"Every failure has the same shape, and every answer an x-request-id. Name it when you ask for help.":
		"Jeder Fehler hat dieselbe Form und jede Antwort eine x-request-id. Nennen Sie sie, wenn Sie um Hilfe bitten.",
	Code: "Code",
	"What to do": "Was zu tun ist",
	"After the first byte": "Nach dem ersten Byte",
	"A stream that has begun has spent its status. A failure then comes as an event with {code}, followed by the usage so far and {code2}. A stream that ends without {code3} was cut off.":
		"Ein begonnener Strom hat seinen Status verbraucht. Ein Fehler kommt dann als Ereignis mit {code}, gefolgt vom bisherigen Verbrauch und {code2}. Ein Strom, der ohne {code3} endet, wurde abgeschnitten.",
	"What a failure costs": "Was ein Fehler kostet",
	"Before the first token: nothing.": "Vor dem ersten Token: nichts.",
	"When the model's server fails in the middle: what was delivered.":
		"Wenn der Modellserver mittendrin ausfällt: was geliefert wurde.",
	"When you leave: what was generated until then. Leaving before the first token costs nothing.":
		"Wenn Sie abbrechen: was bis dahin erzeugt wurde. Ein Abbruch vor dem ersten Token kostet nichts.",
	"Sending again": "Erneut senden",
	"The header {code} says false where the status alone would mislead; the usual SDKs obey it.":
		"Die Kopfzeile {code} sagt false, wo der Status allein irreführen würde; die üblichen SDKs richten sich danach.",
	"The top-level system prompt becomes the first message.":
		"Die Systemanweisung der obersten Ebene wird zur ersten Nachricht.",
	"Kept as it is.": "Bleibt, wie es ist.",
	"The schema itself does not change.": "Das Schema selbst ändert sich nicht.",
	"Text blocks become text; images become image_url parts.": "Textblöcke werden Text; Bilder werden image_url-Teile.",
	"end_turn is stop, tool_use is tool_calls, max_tokens is length.":
		"end_turn ist stop, tool_use ist tool_calls, max_tokens ist length.",
	"usage.output_tokens is usage.completion_tokens.": "usage.output_tokens ist usage.completion_tokens.",
	"From the OpenAI client": "Vom OpenAI-Client",
	"Three things change: the base address, the key, and the model. A model name of another vendor must be replaced.":
		"Drei Dinge ändern sich: die Basisadresse, der Schlüssel und das Modell. Der Modellname eines anderen Anbieters muss ersetzt werden.",
	"Compatible are chat completions, legacy completions (where the <link>model</link> has that mode), embeddings and the list of models. The responses and assistants interfaces and tools of a provider's own are not offered.":
		"Kompatibel sind Chat-Antworten, Textergänzungen (wo das <link>Modell</link> diese Betriebsart hat), Einbettungen und die Modellliste. Die Schnittstellen für Responses und Assistants und anbietereigene Werkzeuge gibt es nicht.",
	"From a message-format SDK": "Von einem SDK mit Nachrichtenformat",
	"This is a change of SDK and of the message format, not only of the address. Use an OpenAI-compatible client, and translate:":
		"Das ist ein Wechsel des SDK und des Nachrichtenformats, nicht nur der Adresse. Verwenden Sie einen OpenAI-kompatiblen Client und übersetzen Sie:",
	"Fields of the message format": "Felder des Nachrichtenformats",
	"Message format": "Nachrichtenformat",
	Here: "Hier",
	"A tool, before and after:": "Ein Werkzeug, vorher und nachher:",
	"Optional fields": "Optionale Felder",
	"A field that the deployed model does not support is left out and named in the header {code}; some models refuse such requests with {code2} instead. The page of each <link>model</link> lists what it honours.":
		"Ein Feld, das das bereitgestellte Modell nicht unterstützt, wird weggelassen und in der Kopfzeile {code} genannt; manche Modelle weisen solche Anfragen stattdessen mit {code2} ab. Die Seite jedes <link>Modells</link> führt auf, was es beachtet.",
	"Its descriptions are in English, as the interface itself is.":
		"Die Beschreibungen sind auf Englisch, wie die Schnittstelle selbst.",
	"From <link>/openapi.json</link>. Every request carries {code}.":
		"Aus <link>/openapi.json</link>. Jede Anfrage trägt {code}.",
	"This service does not publish a description of its interface.":
		"Dieser Dienst veröffentlicht keine Beschreibung seiner Schnittstelle.",
	Parameters: "Parameter",
	"in {place}": "in {place}",
	", required": ", erforderlich",
	"Body {type}": "Inhalt {type}",
	Answers: "Antworten",
	"list of {items}": "Liste von {items}",
	values: "Werten",
	"1. Get access": "1. Zugang erhalten",
	"<link>Sign up</link> and verify your address.":
		"<link>Registrieren Sie sich</link> und bestätigen Sie Ihre Adresse.",
	"<link>Top up</link> at least {topUpMin}. The credit appears when the payment is verified.":
		"<link>Laden Sie</link> mindestens {topUpMin} auf. Das Guthaben erscheint, sobald die Zahlung bestätigt ist.",
	"<link>Create a key</link>. Its secret starts with {code} and is shown once.":
		"<link>Legen Sie einen Schlüssel an</link>. Sein Geheimnis beginnt mit {code} und wird einmal angezeigt.",
	"Keep the secret in a secret manager, with a key of its own for production, for staging and for each application.":
		"Bewahren Sie das Geheimnis in einer Geheimnisverwaltung auf, mit je einem Schlüssel für Produktion, Vorstufe und jede Anwendung.",
	"2. Ask a model": "2. Ein Modell fragen",
	"From nothing to a streamed answer, tool by tool. Where a key is made, the same lines stand with that key in its place. Keep it in {code}, not in a file that is checked in.":
		"Vom leeren Rechner bis zur gestreamten Antwort, Werkzeug für Werkzeug. Wo ein Schlüssel angelegt wird, stehen dieselben Zeilen mit diesem Schlüssel. Bewahren Sie ihn in {code} auf, nicht in einer eingecheckten Datei.",
	"The base address is {code}. Any client of the chat-completion interface works with it; <link>what to enter into each</link>.":
		"Die Basisadresse ist {code}. Jeder Client der Chat-Completions-Schnittstelle funktioniert damit; <link>was bei welchem einzutragen ist</link>.",
	"3. Stream the answer": "3. Die Antwort streamen",
	"With {code} the answer comes as server-sent events. The last event before {code2} carries the usage that is charged, with {code3} in USD.":
		"Mit {code} kommt die Antwort als Server-Sent Events. Das letzte Ereignis vor {code2} trägt den berechneten Verbrauch, mit {code3} in USD.",
	"4. See what it cost": "4. Sehen, was es gekostet hat",
	"Every answer has an {code}. It leads to the request in the <link>log</link>, line by line, and to the same by the interface:":
		"Jede Antwort hat eine {code}. Sie führt zur Anfrage im <link>Protokoll</link>, Zeile für Zeile, und über die Schnittstelle zum selben:",
	"Before you switch traffic": "Bevor Sie umstellen",
	"Run a small representative set of your requests.":
		"Führen Sie eine kleine, repräsentative Auswahl Ihrer Anfragen aus.",
	"Check tool calls, JSON validation, context limits and the quality of the answers.":
		"Prüfen Sie Werkzeugaufrufe, JSON-Prüfung, Kontextgrenzen und die Qualität der Antworten.",
	"Compare the cost by the token counts that were charged.":
		"Vergleichen Sie die Kosten anhand der berechneten Tokenzahlen.",
	"Keep a way back.": "Halten Sie einen Rückweg bereit.",
} as const;
