//! The closed lists by which a line under a name is known: job titles, departments, companies and places. In
//! the lists blanks stand between the words, and `_` within one.

use crate::doubt::is_unspaced;
use crate::words::folded;

/// What somebody is; in lower case.
const ROLES: &str = "\
    director manager engineer developer architect lead head officer president assistant consultant analyst \
    administrator founder co-founder cofounder partner professor ceo cto cfo coo cio ciso cpo cmo cro cdo vp svp \
    evp avp specialist designer scientist secretary programmer technician coordinator supervisor owner \
    accountant controller treasurer chairman chairwoman chair researcher sysadmin sre intern trainee executive \
    strategist planner buyer auditor lawyer attorney counsel editor writer tester maintainer librarian teacher \
    lecturer fellow associate representative leiter leiterin leitung geschäftsführer geschäftsführerin \
    geschäftsführung entwickler entwicklerin softwareentwickler softwareentwicklerin ingenieur ingenieurin \
    vorstand vorstandsvorsitzender vorsitzender vorsitzende berater beraterin referent referentin assistent \
    assistentin teamleiter teamleiterin teamleitung abteilungsleiter abteilungsleiterin bereichsleiter \
    bereichsleiterin gruppenleiter gruppenleiterin projektleiter projektleiterin vertriebsleiter \
    vertriebsleiterin betriebsleiter betriebsleiterin produktmanager projektmanager projektmanagerin \
    produktmanagerin managerin architektin direktor direktorin prokurist prokuristin inhaber inhaberin gründer \
    gründerin sachbearbeiter sachbearbeiterin buchhalter buchhalterin administratorin systemadministrator \
    professorin sekretärin sekretariat directeur directrice responsable gérant gérante ingénieur ingénieure \
    développeur développeuse chef cheffe président présidente consultante assistante architecte pdg dsi \
    fondateur fondatrice gestionnaire chargé chargée comptable directora gerente ingeniero ingeniera \
    desarrollador desarrolladora jefe jefa presidente presidenta arquitecto arquitecta consultor consultora \
    asistente fundador fundadora diretor diretora engenheiro engenheira desenvolvedor desenvolvedora coordenador \
    coordenadora chefe arquiteto arquiteta analista coordinador coordinadora administrador administradora \
    encargado encargada direttore direttrice responsabile sviluppatore sviluppatrice ingegnere architetto \
    consulente fondatore amministratore amministratrice delegato hoofd directeur-generaal ontwikkelaar \
    teamleider afdelingshoofd projectleider adviseur oprichter bestuurder beheerder medewerker kierownik \
    kierowniczka dyrektor dyrektorka inżynier programista programistka prezes konsultant konsultantka \
    specjalista specjalistka założyciel właściciel księgowy księgowa menedżer";

/// What a title says beside it; in lower case.
const QUALIFIERS: &str = "\
    senior junior principal chief deputy vice executive general managing regional global group staff associate \
    interim technical sr jr team teams department departments division unit office stellvertretender \
    stellvertretende leitender leitende technischer technische kaufmännischer kaufmännische abteilung bereich \
    général générale technique adjoint adjointe d'équipe projet projets service équipe técnico técnica equipo \
    proyecto proyectos departamento adjunto adjunta equipe projeto projetos geral tecnico tecnica generale \
    progetto progetti reparto algemeen technisch afdeling zespołu działu projektu techniczny generalny starszy \
    młodszy";

/// What a title is about; in lower case.
const DEPARTMENTS: &str = "\
    sales marketing finance finances operations support engineering it ict hr people culture legal product \
    products project projects program programs software hardware platform infrastructure security information \
    technology technologies data analytics science research design quality assurance qa devops network networks \
    systems system cloud customer customers success account accounts accounting business intelligence strategy \
    communications communication relations public human resources procurement purchasing logistics supply chain \
    compliance risk audit reliability site web frontend backend full-stack fullstack mobile machine learning ai \
    financial commercial digital services delivery solutions solution innovation administration controlling \
    database r&d facilities manufacturing planning vertrieb vertriebs finanzen personal einkauf betrieb \
    entwicklung forschung technik verwaltung buchhaltung recht qualität qualitätssicherung informatik logistik \
    kundendienst kundenservice rechnungswesen infrastruktur sicherheit produktentwicklung softwareentwicklung \
    informatique ventes commerciale financier financière ressources humaines opérations développement recherche \
    logiciel logiciels d'exploitation juridique achats qualité sécurité systèmes réseaux données produit \
    produits comptabilité ventas finanzas financiero financiera recursos humanos operaciones desarrollo sistemas \
    comercial informática tecnología seguridad calidad compras producto investigación datos vendas finanças \
    financeiro financeira operações desenvolvimento tecnologia segurança qualidade produto dados infraestrutura \
    engenharia ti vendite finanza finanziario risorse umane operativo sviluppo informatica sicurezza qualità \
    acquisti prodotto sistemi ricerca dati verkoop financiën inkoop ontwikkeling onderzoek beheer beveiliging \
    kwaliteit personeel sprzedaży finansów finansowy marketingu operacyjny rozwoju informatyki bezpieczeństwa \
    jakości zakupów produktu oprogramowania";

/// What joins them.
const JOINTS: &str =
    "of the and for de la du des der die das und für van den di del della dello dei e et y da do dos ds en el &";

const UNSPACED_ROLES: &str = "部長 課長 係長 社長 主任 取締役 次長 室長 エンジニア マネージャー 経理 经理 总监 总经理 董事长 执行官 技术官 财务官 主管 工程师 總監 經理 工程師 总裁 팀장 부장 과장 차장 대리 이사 엔지니어 개발자 사원 대표";

const UNSPACED_DEPARTMENTS: &str = "営業 総務 人事 開発 技術 情報システム 経理 企画 部 課 室 代表 システム 开发 运营 首席 总 信息 人力资源 运维 技术 研发 产品 市场 销售 财务 部门 项目 高级 副 개발 운영 영업 기술 인사 재무 팀 부";

/// Legal forms that a name needs to be known for a company's; in lower case, without dots.
const FORMS: &str = "gmbh ag ltd inc llc llp plc corp sarl srl spa bv oy ltda gbr ev ohg";

/// Legal forms that are words too: known after the name that the sender's address says.
const SHORT_FORMS: &str = "kg se sa sas sl nv ab as lda co company corporation limited incorporated";

/// Places that stand beside a company or a street; in lower case.
const PLACES: &str = "\
    berlin hamburg münchen munich köln cologne frankfurt stuttgart düsseldorf leipzig dresden hannover nürnberg \
    bremen wien vienna graz zürich zurich bern basel genf geneva genève lausanne london manchester edinburgh \
    dublin cambridge oxford bristol paris lyon marseille toulouse lille nantes bordeaux strasbourg bruxelles \
    brussels brussel antwerpen gent luxembourg madrid barcelona valencia sevilla bilbao lisboa lisbon porto roma \
    rome milano milan torino turin napoli bologna firenze venezia amsterdam rotterdam utrecht eindhoven warszawa \
    warsaw kraków krakow wrocław gdańsk poznań łódź praha prague budapest copenhagen københavn stockholm oslo \
    helsinki new_york boston chicago seattle san_francisco los_angeles austin denver toronto montréal montreal \
    vancouver mexico_city ciudad_de_méxico bogotá lima santiago buenos_aires são_paulo rio_de_janeiro brasília \
    tokyo 東京 大阪 osaka beijing 北京 shanghai 上海 shenzhen 深圳 seoul 서울 singapore sydney melbourne germany deutschland \
    österreich austria schweiz switzerland suisse france spain españa portugal italy italia netherlands \
    nederland belgium poland polska uk united_kingdom england ireland usa united_states canada brazil brasil \
    méxico japan china korea cedex";

/// What stands beside a name: degrees and forms of address; in lower case, without dots.
const HONOURS: &str = "\
    dr prof phd mba msc bsc mag dipl ing dipl-ing mr mrs ms herr frau pmp cpa cissp she her hers he him his they \
    them theirs sie ihr er ihm mgr inż ir drs";

/// Whether a line is a job title and nothing else: every word of it is known, and one of them is a role.
pub(crate) fn is_title(text: &str) -> bool {
    const WORDS: usize = 7;
    let words = title_words(text);
    let joint = |word: Option<&String>| word.is_some_and(|word| listed(JOINTS, word));
    !words.is_empty()
        && words.len() <= WORDS
        && !joint(words.first())
        && !joint(words.last())
        && words.iter().all(|word| is_role(word) || is_about(word) || listed(JOINTS, word))
        && words.iter().any(|word| is_role(word))
}

/// Whether it is a department, which beside a title or a company is part of a signature.
pub(crate) fn is_department(text: &str) -> bool {
    const WORDS: usize = 4;
    let words = title_words(text);
    !words.is_empty()
        && words.len() <= WORDS
        && words.iter().all(|word| is_about(word) || listed(JOINTS, word))
        && words.iter().any(|word| is_about(word))
}

/// Whether a word is of a title or a department, so that an address of that name is nobody's.
pub(crate) fn is_of_title(word: &str) -> bool {
    is_role(word) || is_about(word)
}

/// Whether a company is named, by its legal form; `domain`: of the sender's address.
pub(crate) fn is_company(text: &str, domain: &str) -> bool {
    const WORDS: usize = 4;
    if let Some(is_one) = is_unspaced_company(text) {
        return is_one;
    }
    let text = ["sp. z o.o.", "sp. z o. o.", "Sp. z o.o."]
        .iter()
        .find_map(|form| text.strip_suffix(form))
        .map_or_else(|| text.to_owned(), |name| format!("{name} GmbH"));
    let joins = |word: &str| matches!(word, "&" | "and" | "und" | "et" | "y" | "e" | "+");
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let (mut formed, mut short) = (false, false);
    // Forms come several in a row: `GmbH & Co. KG`.
    while let Some(last) = words.last() {
        let bare = folded(last).replace(['.', ','], "");
        formed |= listed(FORMS, &bare);
        short |= listed(SHORT_FORMS, &bare);
        let form = listed(FORMS, &bare) || listed(SHORT_FORMS, &bare);
        if !form && !((formed || short) && joins(last)) {
            break;
        }
        words.pop();
    }
    if !(formed || short) || words.is_empty() || words.len() > WORDS {
        return false;
    }
    let named = |word: &str| {
        word.starts_with(char::is_uppercase)
            && word.trim_end_matches(',').chars().all(|letter| letter.is_alphabetic() || "-.'’&".contains(letter))
    };
    let words: Vec<&str> = words.into_iter().map(|word| word.trim_end_matches(',')).collect();
    if !words.iter().all(|word| named(word) || joins(word)) {
        return false;
    }
    let known = words.iter().find(|word| folded(word) != "the").is_some_and(|first| {
        let first: String = folded(first).chars().filter(|letter| letter.is_alphanumeric()).collect();
        let labels: Vec<&str> = domain.split('.').collect();
        let own = &labels[..labels.len().saturating_sub(1)];
        first.chars().count() >= 3 && own.iter().any(|label| label.replace('-', "").starts_with(&first))
    });
    // Of several words the first could be what is to be done with the others.
    known || (formed && matches!(words.as_slice(), [_] | [_, "&" | "und" | "and", _]))
}

/// None if it has no form of these scripts.
fn is_unspaced_company(text: &str) -> Option<bool> {
    const LETTERS: usize = 8;
    /// What could be done with one, and particles behind it.
    const DONE: &str =
        "知告联聯付给給发發送问問询詢找请請由让讓对對向到至按归归停删刪用宛様側分用向만에로은는을를도외께";
    let bare: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
    let rest = ["株式会社", "有限公司", "주식회사", "(주)", "㈜"]
        .iter()
        .find_map(|form| bare.strip_prefix(form).or_else(|| bare.strip_suffix(form)))?;
    let is_plain =
        |letter: char| letter.is_alphanumeric() && !matches!(letter, '\u{3040}'..='\u{309f}') && !DONE.contains(letter);
    Some(
        !rest.is_empty()
            && rest.chars().count() <= LETTERS
            && rest.chars().all(|letter| is_plain(letter) || letter == 'ー'),
    )
}

pub(crate) fn is_place(text: &str) -> bool {
    listed(PLACES, &folded(text).replace(' ', "_"))
}

pub(crate) fn is_honour(word: &str) -> bool {
    listed(HONOURS, &word.replace('.', ""))
}

fn title_words(text: &str) -> Vec<String> {
    let bare = |word: &str| folded(word.trim_matches(|letter: char| ".,:()".contains(letter)));
    // Both forms of a role in one word.
    let word = |word: &str| {
        let word = bare(word);
        let short =
            [":in", "*in", "/in", "_in", "(in", "·in", ":r", "/-in"].iter().find_map(|end| word.strip_suffix(end));
        short.map_or_else(|| word.clone(), str::to_owned)
    };
    text.split(|letter: char| letter.is_whitespace() || letter == '/')
        .map(word)
        .filter(|word| !word.is_empty())
        .collect()
}

fn is_role(word: &str) -> bool {
    listed(ROLES, word) || (is_unspaced(word) && is_unspaced_title(word))
}

fn is_about(word: &str) -> bool {
    listed(QUALIFIERS, word)
        || listed(DEPARTMENTS, word)
        || (is_unspaced(word) && parted(word, UNSPACED_DEPARTMENTS, "") == Some(false))
}

fn is_unspaced_title(word: &str) -> bool {
    parted(word, UNSPACED_DEPARTMENTS, UNSPACED_ROLES) == Some(true)
}

/// Whether the whole word is made of these parts, and whether a role is among them.
fn parted(word: &str, about: &str, roles: &str) -> Option<bool> {
    if word.is_empty() {
        return Some(false);
    }
    let longest = |parts: &str| parts.split_whitespace().filter(|part| word.starts_with(*part)).map(str::len).max();
    if let Some(length) = longest(roles)
        && parted(&word[length..], about, roles).is_some()
    {
        return Some(true);
    }
    parted(&word[longest(about)?..], about, roles)
}

/// Whether a word is in one of the lists above, where blanks stand between the words.
fn listed(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
}
